// Copies through pinned memory: pending until something waits for them, and correct for all sizes.
#include <cstring>

#include "etc_core/base/cuda/device_array.h"
#include "etc_core/base/cuda/runtime.h"
#include "tests/support/catch.h"
#include "tests/support/numbers.h"
#include "tests/support/simt/copy_queues.h"

using namespace etc;

namespace {

Bytes device_memory(std::int64_t bytes) {
  simt::provide_memory();
  return simt::device_bytes(bytes, Purpose::scratch);
}

}  // namespace

TEST_CASE("a queued copy reads its source and lands only at its wait", "[simt]") {
  Bytes device = device_memory(sizeof(int));
  auto* const pinned = static_cast<int*>(simt::allocate_pinned(2 * sizeof(int)));
  int& source = pinned[0];
  int& back = pinned[1];
  const simt::Event event = simt::make_event();
  const auto send = [&](simt::Queue queue, int first, int then) {
    source = first;
    simt::queue_copy(queue, device.data(), &source, sizeof source);
    simt::record(event, queue);
    source = then;  // too early
  };
  const auto value = [&] {
    back = 0;
    simt::queue_copy(simt::Queue::compute, &back, device.data(), sizeof back);
    simt::record(event, simt::Queue::compute);
    CHECK(back == 0);  // pending
    simt::wait_on_host(event);
    return back;
  };
  send(simt::Queue::copies, 1, 2);
  simt::wait_on_host(event);
  CHECK(value() == 2);  // the source's value at the time of the wait
  send(simt::Queue::copies, 3, 3);
  CHECK(value() == 2);  // the copy queue has not been waited for
  send(simt::Queue::copies, 4, 4);
  simt::wait_on_queue(simt::Queue::compute, event);
  CHECK(value() == 4);
  send(simt::Queue::compute, 5, 5);
  simt::run_queued_work();  // as a kernel does
  CHECK(value() == 5);
}

TEST_CASE("arrays of any size go to the device and back through the ring, many under way at once", "[simt]") {
  constexpr std::int64_t kMega = 1 << 20;
  // Small copies in stream order, one above that limit, uneven ones that wrap around the 16 MiB ring, one larger than
  // the ring.
  std::vector<std::int64_t> sizes = {1, 255, 4097, 64 * 1024, 64 * 1024 + 1, 3 * kMega + 5, 7 * kMega + 1};
  for (int i = 0; i < 8; ++i) sizes.push_back(2 * kMega + 300 * i);
  sizes.push_back(21 * kMega);
  std::vector<Bytes> places;
  std::vector<unsigned char> values;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    places.push_back(device_memory(sizes[i]));
    values.resize(static_cast<std::size_t>(sizes[i]));
    for (std::size_t k = 0; k < values.size(); ++k) values[k] = static_cast<unsigned char>((k * 31 + (k >> 8) + i));
    simt::copy_to_device(places.back().data(), values.data(), sizes[i]);
    std::memset(values.data(), 0xee, values.size());  // the caller may reuse it
  }
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    CAPTURE(sizes[i]);
    values.assign(static_cast<std::size_t>(sizes[i]), 0);
    simt::copy_to_host(values.data(), places[i].data(), sizes[i]);
    std::size_t wrong = 0;
    for (std::size_t k = 0; k < values.size(); ++k) {
      wrong += values[k] != static_cast<unsigned char>((k * 31 + (k >> 8) + i)) ? 1 : 0;
    }
    CHECK(wrong == 0);
  }
}

TEST_CASE("the ring is charged to the ledger once", "[simt]") {
  const auto held = [] { return memory_ledger::report().current[static_cast<std::size_t>(Purpose::scratch)]; };
  const float number = 1.5f;
  Bytes device = device_memory(sizeof number);
  simt::copy_to_device(device.data(), &number, sizeof number);
  const std::int64_t before = held();
  CHECK(before >= 32 << 20);
  simt::copy_to_device(device.data(), &number, sizeof number);
  CHECK(held() == before);
}
