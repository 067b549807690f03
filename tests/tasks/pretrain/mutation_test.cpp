// Damaged texts give a readable error, or examples that fulfil the invariants and that a data set accepts.

#include "tasks/prepare/record_walk.h"
#include "tests/support/gzip.h"
#include "tests/support/mutate.h"
#include "tests/tasks/pretrain/prepare_scene.h"

namespace etc::test {
namespace {

const std::string kText =
    "Ab c d. E f g!\nThe caf\u00e9 of \u4e2d\u6587 and \u0130, x.y z.\n\n\nA b c d e f g h i j k l m n o p q.\nr s t\n"
    "u v.\n w \nx y z\n\nlast one of all\n";

std::string json_lines() {
  std::string lines;
  for (const char* text : {"a b c.\nd e f", "g", "h i j\n\nk l. M n"}) lines += json_line(Json{{"text", text}}) + "\n";
  return lines;
}

struct Outcome {
  std::int64_t read = 0, faults = 0, sentences = 0, prepared = 0, refused = 0, examples = 0;
};

// Checks that the sentences of a record are consecutive ranges of pieces of the vocabulary.
void check_cut(const pretrain::TokenizedText& text) {
  const auto ascends = [](const Numbers& numbers, std::int64_t first, std::int64_t last) {
    for (const std::int64_t number : numbers) {
      if (number < first || number > last) return false;
      first = number + 1;
    }
    return true;
  };
  CHECK(ascends(text.sentence_ends, 1, std::ssize(text.ids)));
  CHECK((text.sentence_ends.empty() ? 0 : text.sentence_ends.back()) == std::ssize(text.ids));
  CHECK(ascends(text.document_begins, 0, std::ssize(text.sentence_ends)));
  for (const std::int32_t id : text.ids) CHECK((id >= 0 && id < 8 + 2 * 26));
}

// Runs the reader and cuts its records into pieces.
void read_mutant(const PretrainScene& scene, Outcome& outcome) {
  struct Record {
    pretrain::CutText cut;
    prepare::FaultList faults;
  };
  const auto preparation = scene.make();
  const auto& pretraining = dynamic_cast<const pretrain::PretrainPreparation&>(*preparation);
  prepare::RecordWork<Record> work;
  std::int64_t records = 0;
  work.work = [&](data::RecordSlice& slice) {
    Record record;
    record.cut = pretraining.cut(slice, record.faults);
    return record;
  };
  work.deliver = [&](std::int64_t index, const data::TextPosition&, Record&& record) {
    CHECK(index == records++);
    check_cut(record.cut.text);
    outcome.sentences += std::ssize(record.cut.text.sentence_ends);
    for (const data::Fault& fault : record.faults.rows()) CHECK((!fault.code.empty() && !fault.message.empty()));
  };
  work.progress = [](std::int64_t) {};
  const std::filesystem::path path = scene.folder / "in.txt";
  const prepare::PassEnd end = prepare::walk_records(*preparation, path, work);
  outcome.read += records;
  if (!end.fault) return;
  ++outcome.faults;
  CHECK(std::string(end.fault->what()).starts_with("byte "));
  CHECK(end.fault_record == records);
}

// Runs the whole preparation up to the data set.
void prepare_mutant(PretrainScene& scene, Outcome& outcome) {
  try {
    scene.run();
  } catch (const Error& error) {
    CHECK_THAT(error.what(), Catch::Contains("in.txt"));
    ++outcome.refused;
    return;
  }
  ++outcome.prepared;
  const prepare::Counts& counts = scene.counts;
  CHECK(counts.rejected + counts.dropped <= counts.records);
  for (const data::Fault& fault : scene.report()) CHECK((!fault.code.empty() && !fault.message.empty()));
  const auto examples = scene.examples();
  CHECK(std::ssize(examples) == counts.examples);
  for (const data::Example& example : examples) check_example(example, 24, 8 + 2 * 26, {4, 5, 6});
  outcome.examples += counts.examples;
}

void run_mutants(std::uint64_t count) {
  std::vector<Json> settings = {{{"objective", "mlm_nsp"}, {"lines", "sentences"}},
                                {{"objective", "mlm"}, {"lines", "paragraphs"}, {"document_ends", "files"}},
                                {{"objective", "mlm_cpc"}, {"lines", "wrapped"}},
                                {{"objective", "mlm_nsp"}, {"text_key", "text"}}};
  const std::string bytes[] = {kText, gzip(kText), json_lines(), gzip(json_lines())};
  Outcome outcome;
  PretrainScene scene;
  for (std::uint64_t seed = 0; seed < count; ++seed) {
    CAPTURE(seed);
    scene.settings = settings[seed % settings.size()];
    scene.settings.update({{"max_seq_length", 24}, {"dupe_factor", 1}, {"min_document_sentences", 1}});
    const bool json = scene.settings.contains("text_key"), packed = seed / 4 % 4 == 0;
    test::write_file(scene.folder / "in.txt", mutate(bytes[(json ? 2 : 0) + (packed ? 1 : 0)], seed));
    read_mutant(scene, outcome);
    // Writing and reading data sets takes longer than the rest, so only some mutants do it.
    if (seed % 25 < 3) prepare_mutant(scene, outcome);
  }
  CHECK(outcome.read > static_cast<std::int64_t>(count) / 2);
  CHECK(outcome.faults > 0);
  CHECK(outcome.sentences > static_cast<std::int64_t>(count));
  CHECK(outcome.prepared > 0);
  CHECK(outcome.refused > 0);
  CHECK(outcome.examples > 0);
}

}  // namespace

TEST_CASE("damaged texts give errors or examples that hold", "[pretrain]") {
  run_mutants(200);
}

TEST_CASE("many more damaged texts give errors or examples that hold", "[pretrain][slow]") {
  run_mutants(5000);
}

}  // namespace etc::test
