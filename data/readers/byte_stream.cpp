#include "data/readers/byte_stream.h"

#include <fcntl.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <vector>

#include "etc_core/base/error.h"

namespace etc::data {

namespace {

constexpr std::size_t kBlockBytes = 1 << 18;
constexpr int kGzipOnly = 15 + 16;  // zlib's windowBits: largest window, gzip header required

}  // namespace

std::string raw_file_text(const std::filesystem::path& path) {
  return path == kStandardInput ? "standard input" : path.string();
}

struct ByteStream::Impl {
  std::string name;
  int file = -1;  // descriptor
  std::vector<unsigned char> block = std::vector<unsigned char>(kBlockBytes);
  std::size_t begin = 0, end = 0;  // unused part of the block
  std::int64_t taken = 0;          // bytes read from the file
  bool gzip = false;
  bool inside_member = false;  // of a gzip file; it may consist of several members
  bool ended = false;
  z_stream inflater{};
  bool inflater_ready = false;
  std::string fault;
  Sha256* hash = nullptr;

  ~Impl() {
    if (inflater_ready) inflateEnd(&inflater);
    if (file >= 0) ::close(file);
  }

  // False at the end of the file.
  bool add_to_block() {
    ssize_t got = 0;
    do {
      got = ::read(file, block.data() + end, block.size() - end);
    } while (got < 0 && errno == EINTR);
    if (got < 0) fail(name, "cannot read: {}", std::strerror(errno));
    end += static_cast<std::size_t>(got);
    taken += got;
    return got > 0;
  }

  // Makes at least one unused byte available; false at the end of the file. From a pipe it takes the bytes available
  // without waiting for more, so that the program can answer the writer.
  bool refill() {
    if (begin < end) return true;
    begin = end = 0;
    add_to_block();
    if (hash != nullptr) hash->update({reinterpret_cast<const char*>(block.data()), end});
    return end > 0;
  }

  // Checks the first two bytes. Reads the second one only if the first is gzip's, because a pipe may hold only one
  // byte.
  bool begins_like_gzip() {
    if (!refill() || block[0] != 0x1F) return false;
    while (end < 2) {
      if (!add_to_block()) return false;
    }
    return block[1] == 0x8B;
  }

  std::size_t read_plain(char* to, std::size_t size) {
    if (!refill()) return 0;
    const std::size_t count = std::min(size, end - begin);
    std::memcpy(to, block.data() + begin, count);
    begin += count;
    return count;
  }

  void stop(std::string why) {
    fault = std::move(why);
    ended = true;
  }

  std::size_t read_gzip(char* to, std::size_t size) {
    std::size_t done = 0;
    while (done < size && !ended) {
      if (!refill()) {
        ended = true;
        if (inside_member) stop(fmt::format("the gzip data ends early, after {} compressed bytes", taken));
        break;
      }
      if (!inside_member) {
        // Zero bytes after a member are padding; anything else must be another member.
        if (block[begin] == 0) {
          ++begin;
          continue;
        }
        inflateReset(&inflater);
        inside_member = true;
      }
      inflater.next_in = block.data() + begin;
      inflater.avail_in = static_cast<uInt>(end - begin);
      inflater.next_out = reinterpret_cast<Bytef*>(to) + done;
      inflater.avail_out = static_cast<uInt>(std::min<std::size_t>(size - done, 1u << 30));
      const uInt room = inflater.avail_out;
      const int status = inflate(&inflater, Z_NO_FLUSH);
      begin = end - inflater.avail_in;
      done += room - inflater.avail_out;
      if (status == Z_STREAM_END) {
        inside_member = false;
      } else if (status != Z_OK && status != Z_BUF_ERROR) {
        stop(fmt::format("the gzip data is damaged near compressed byte {}: {}",
                         taken - static_cast<std::int64_t>(end - begin),
                         inflater.msg != nullptr ? inflater.msg : "unpacking failed"));
      }
    }
    return done;
  }
};

ByteStream::ByteStream(const std::filesystem::path& path) : impl_(std::make_unique<Impl>()) {
  Impl& s = *impl_;
  const bool standard_input = path == kStandardInput;
  s.name = raw_file_text(path);
  std::error_code ignored;  // a failure is reported by open() below
  if (std::filesystem::is_directory(path, ignored)) fail(s.name, "expected a file, got a folder");
  // A duplicated descriptor, so that closing the stream leaves standard input open.
  s.file = standard_input ? ::dup(STDIN_FILENO) : ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (s.file < 0) fail(s.name, "cannot open: {}", std::strerror(errno));
  s.gzip = s.begins_like_gzip();
  if (s.gzip) {
    if (inflateInit2(&s.inflater, kGzipOnly) != Z_OK) fail(s.name, "cannot start unpacking");
    s.inflater_ready = true;
  }
}

ByteStream::~ByteStream() = default;

std::size_t ByteStream::read(char* to, std::size_t size) {
  return impl_->gzip ? impl_->read_gzip(to, size) : impl_->read_plain(to, size);
}

const std::string& ByteStream::fault() const {
  return impl_->fault;
}

void ByteStream::hash_into(Sha256& hash) {
  Impl& s = *impl_;
  s.hash = &hash;
  hash.update({reinterpret_cast<const char*>(s.block.data()), s.end});  // the bytes read to detect the format
}

void ByteStream::read_rest() {
  do {
    impl_->begin = impl_->end;
  } while (impl_->refill());
}

std::int64_t ByteStream::position() const {
  return impl_->taken - static_cast<std::int64_t>(impl_->end - impl_->begin);
}

}  // namespace etc::data
