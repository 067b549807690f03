#include <algorithm>
#include <string>
#include <vector>

#include "data/dataset.h"
#include "data/dataset_info.h"
#include "data/h5/column.h"
#include "data/h5/info.h"
#include "data/h5/library.h"
#include "data/h5/output_file.h"
#include "data/h5/table.h"
#include "data/text/sha256.h"
#include "etc_core/base/error.h"
#include "etc_core/base/files.h"

namespace etc::data {

namespace {

// SHA-256 over the uncompressed little-endian bytes of the data sets in lexicographic order of their paths. Reads them
// back from the file, because they were written interleaved and the hash covers one after the other.
std::string content_sha256(hid_t file, std::vector<std::string> paths, const std::string& where) {
  std::sort(paths.begin(), paths.end());
  Sha256 hash;
  for (const std::string& path : paths) {
    const std::size_t slash = path.rfind('/');
    const std::string place = where + ":" + path;
    const h5::Handle group(H5Gopen2(file, path.substr(0, slash).c_str(), H5P_DEFAULT), H5Gclose, place, "open");
    const h5::ColumnReader column(group.id(), path.substr(slash + 1), h5::NumberClass::any, UINT64_MAX, place);
    for (std::int64_t b = 0; b < column.blocks(); ++b) {
      const h5::Block block = column.load_little_endian(b);
      hash.update({block.as<char>(), static_cast<std::size_t>(block.bytes.size())});
    }
  }
  return hash.hex();
}

}  // namespace

// Built and destroyed under the library's Lock. Members are destroyed in reverse order, so that tables close before the
// file.
struct DatasetWriter::Impl {
  Impl(const std::filesystem::path& path, const Schema& schema_, const DatasetInfo& info_)
      : where(h5::where_of(path)),
        schema(schema_),
        info(info_),
        target(path),
        file(target.temporary_path(), where),
        examples(std::in_place, file.id(), "examples", h5::stored_features(schema, info.preprocess_config), where),
        rejects(std::in_place, file.id(), "rejects", h5::fault_features(schema), where),
        absent(h5::absent_features(schema, info.preprocess_config)) {
    if (!schema.gold.empty()) gold.emplace(file.id(), "gold", schema.gold, where);
  }

  std::vector<h5::TableWriter*> tables() {
    std::vector<h5::TableWriter*> all{&*examples, &*rejects};
    if (gold) all.push_back(&*gold);
    return all;
  }

  // The example without the features that the settings leave out; `copy` holds it if there are some.
  const Example& stored(const Example& example, Example& copy) const {
    if (absent.empty()) return example;
    copy = example;
    for (const auto& [name, empty] : absent) {
      const auto found = copy.find(name);
      if (found == copy.end() || found->second != empty)
        fail(where + ":/examples/" + name, "expected an empty list: data of these settings do not hold the feature");
      copy.erase(found);
    }
    return copy;
  }

  std::string where;
  Schema schema;
  DatasetInfo info;
  AtomicFile target;
  h5::OutputFile file;
  std::optional<h5::TableWriter> examples, rejects, gold;  // none after finish(); gold: where the schema has it
  Example absent;
};

DatasetWriter::DatasetWriter(const std::filesystem::path& path, const Schema& schema, const DatasetInfo& info) {
  if (info.task != schema.task)
    fail(h5::where_of(path), "task: expected {} as in the schema, got {}", schema.task, info.task);
  const h5::Lock lock;
  impl_ = std::make_unique<Impl>(path, schema, info);
}

DatasetWriter::~DatasetWriter() {
  const h5::Lock lock;
  impl_.reset();
}

void DatasetWriter::append(const Example& example) {
  if (!impl_->examples) fail(impl_->where, "the file is finished: nothing can be appended");
  const h5::Lock lock;
  Example copy;
  impl_->examples->append(impl_->stored(example, copy));
  impl_->file.check();
}

void DatasetWriter::append_gold(const Example& row) {
  if (!impl_->gold) fail(impl_->where + ":/gold", "the file is finished, or the schema has no gold features");
  const h5::Lock lock;
  impl_->gold->append(row);
  impl_->file.check();
}

void DatasetWriter::add_fault(const Fault& fault) {
  if (!impl_->rejects) fail(impl_->where, "the file is finished: nothing can be appended");
  if (fault.severity != Severity::reject && fault.severity != Severity::drop)
    fail(impl_->where + ":/rejects/severity", "expected reject or drop, got {}", severity_text(fault.severity));
  const h5::Lock lock;
  impl_->rejects->append(h5::example_of(fault, impl_->schema));
  impl_->file.check();
}

void DatasetWriter::mark_missing(const MissingPart& part) {
  if (!impl_->examples) fail(impl_->where, "the file is finished: it cannot be marked as incomplete");
  impl_->info.missing.push_back(part);
}

void DatasetWriter::finish(const std::vector<SourceFile>& source_files, std::int64_t input_records,
                           std::int64_t rejected, std::int64_t dropped) {
  Impl& impl = *impl_;
  if (!impl.examples) fail(impl.where, "the file is finished already");
  if (rejected < 0 || dropped < 0 || input_records < rejected + dropped)
    fail(impl.where, "expected n_input_records of at least n_rejected + n_dropped, got {} with {} and {}",
         input_records, rejected, dropped);
  if (impl.gold && impl.gold->rows() != input_records - rejected - dropped)
    fail(impl.where + ":/gold", "expected a row for each of {} accepted records, got {}",
         input_records - rejected - dropped, impl.gold->rows());
  const h5::Lock lock;
  std::vector<std::string> paths;
  for (h5::TableWriter* table : impl.tables()) {
    table->flush();
    paths.insert(paths.end(), table->data_sets().begin(), table->data_sets().end());
  }
  impl.file.check();
  impl.info.source_files = source_files;
  impl.info.input_records = input_records;
  impl.info.rejected = rejected;
  impl.info.dropped = dropped;
  impl.info.examples = impl.examples->rows();
  impl.info.max_long_len = impl.examples->longest(impl.schema.long_align);
  impl.info.max_global_len = impl.examples->longest(impl.schema.global_align);
  impl.info.content_sha256 = content_sha256(impl.file.id(), std::move(paths), impl.where);
  h5::write_info(impl.file.id(), impl.info, impl.where);

  impl.examples.reset();
  impl.rejects.reset();
  impl.gold.reset();
  impl.file.close();
  impl.target.commit();
}

}  // namespace etc::data
