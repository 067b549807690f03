#include "tasks/prepare/file_pass.h"

#include "tasks/prepare/converted_text.h"

namespace etc::prepare {

Converted converted_or_rejected(const Preparation& preparation, data::RecordSlice& record) {
  try {
    return preparation.convert_record(record);
  } catch (const data::InputFault& fault) {
    if (!record.stands_alone || !record.cut_short.empty()) throw;
    Converted unread;
    unread.faults.reject("", fault.code(), fault.what());
    return unread;
  }
}

PassEnd pass_over_file(const Preparation& preparation, const std::filesystem::path& path,
                       const PassCallbacks& callbacks) {
  RecordWork<Converted> work;
  work.work = [&](data::RecordSlice& slice) { return converted_or_rejected(preparation, slice); };
  work.deliver = [&](std::int64_t index, const data::TextPosition& begin, Converted&& converted) {
    callbacks.record({index, begin, std::move(converted)});
  };
  work.progress = callbacks.progress;
  work.source = callbacks.source;
  std::optional<SharedWalk<Converted>> shared;
  if (callbacks.processes != nullptr) {
    shared.emplace(SharedWalk<Converted>{*callbacks.processes, text_of, converted_of});
    work.shared = &*shared;
  }
  return walk_records(preparation, path, work);
}

void help_over_file(const Preparation& preparation, const std::filesystem::path& path, Communicator& processes) {
  PassCallbacks callbacks;
  callbacks.record = [](PassRecord&&) {};
  callbacks.progress = [](std::int64_t) { stop_helping_if_asked(); };
  callbacks.processes = &processes;
  pass_over_file(preparation, path, callbacks);
}

PassEnd pass_over_stream(const Preparation& preparation, const std::filesystem::path& path,
                         const PassCallbacks& callbacks) {
  data::ByteStream stream(path);
  const auto reader = preparation.open_records(stream);
  PassEnd end;
  data::RecordSlice slice;
  try {
    while (reader->next(slice)) {
      end.fault_record = slice.index;
      PassRecord record{slice.index, slice.begin, converted_or_rejected(preparation, slice)};
      ++end.fault_record;
      callbacks.record(std::move(record));
      callbacks.progress(stream.position());
    }
  } catch (const data::InputFault& fault) {
    end.fault = fault;
  } catch (const std::bad_alloc&) {
    fail_out_of_memory(path, slice.index, slice.begin);
  }
  end.notes = reader->notes();
  return end;
}

}  // namespace etc::prepare
