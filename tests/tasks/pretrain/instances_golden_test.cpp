// Instances and masks against dense_reference.h5: groups `masking` and `instances`, draw for draw.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

#include "tasks/pretrain/instances.h"
#include "tasks/pretrain/masking.h"
#include "tasks/pretrain/schema.h"
#include "tests/golden/golden_group.h"
#include "tests/tasks/pretrain/scripted_draws.h"
#include "tests/tasks/pretrain/text_in_memory.h"

namespace etc::test {
namespace {

using Numbers = std::vector<std::int64_t>;

Numbers numbers(const GoldenFile& file, const std::string& name) {
  return file.read<std::int64_t>(name).values;
}

TextInMemory text_of(const GoldenFile& file) {
  const auto sentences = file.read_ragged<std::int64_t>("instances/sentences");
  std::vector<std::vector<Numbers>> documents;
  auto next = sentences.begin();
  for (const std::int64_t count : numbers(file, "instances/sentences_per_document")) {
    documents.emplace_back(next, next + count);
    next += count;
  }
  REQUIRE(next == sentences.end());
  return TextInMemory(documents);
}

// An instance as the published code writes it.
struct Written {
  Numbers before, tokens, segments, positions, labels;
  std::int64_t random_next = -1;
};

struct Group {
  Group(const GoldenFile& golden, const std::string& group) : file(golden), name("instances/" + group) {
    rules.masked_lm_prob = file.real_attribute(name, "masked_lm_prob");
    rules.max_predictions = file.int_attribute(name, "max_predictions_per_seq");
    rules.whole_words = file.int_attribute(name, "whole_word") != 0;
    rules.mask_id = file.int_attribute(name, "mask");
    rules.vocab_size = file.int_attribute(name, "vocab");
    cls = file.int_attribute(name, "cls");
    sep = file.int_attribute(name, "sep");
    for (const std::int32_t continues : file.read_mask("instances/continuation_piece")) {
      kinds.push_back(continues != 0 ? pretrain::kContinues : pretrain::kBegins);
    }
    kinds.at(static_cast<std::size_t>(cls)) = kinds.at(static_cast<std::size_t>(sep)) = pretrain::kSpecial;
  }

  Written write(const TextInMemory& text, const pretrain::Instance& instance, pretrain::Draws& draws) const {
    Written written;
    written.random_next = instance.random_next;
    written.before = {cls};
    const auto add = [&](const pretrain::PieceRange& range, std::int64_t segment) {
      const auto begin = text.pieces.begin() + range.begin;
      written.before.insert(written.before.end(), begin, begin + range.length);
      written.before.push_back(sep);
      written.segments.resize(written.before.size(), segment);
    };
    add(instance.a, 0);
    add(instance.b, 1);
    Numbers piece_kinds;
    for (const std::int64_t id : written.before) piece_kinds.push_back(kinds.at(static_cast<std::size_t>(id)));
    const pretrain::Masks masks = draw_masks({written.before, piece_kinds, {}}, rules, draws);
    written.positions = masks.positions;
    written.tokens = written.before;
    for (std::size_t i = 0; i < masks.positions.size(); ++i) {
      const auto at = static_cast<std::size_t>(masks.positions[i]);
      written.labels.push_back(written.before.at(at));
      written.tokens.at(at) = masks.input_ids.at(i);
    }
    return written;
  }

  std::vector<Written> all() const {
    TextInMemory text = text_of(file);
    const pretrain::PairRules pairs{file.int_attribute(name, "max_seq_length"),
                                    file.real_attribute(name, "short_seq_prob")};
    ScriptedDraws draws(file, name);
    std::vector<Written> written;
    for (std::int64_t copy = 0; copy < file.int_attribute(name, "dupe_factor"); ++copy) {
      for (std::int64_t document = 0; document < text.documents(); ++document) {
        pretrain::pair_instances(text, document, pairs, draws, [&](const pretrain::Instance& instance) {
          CHECK(instance.document == document);
          written.push_back(write(text, instance, draws));
        });
      }
    }
    CHECK(draws.used_up());
    return written;
  }

  const GoldenFile& file;
  std::string name;
  pretrain::MaskRules rules;
  std::int64_t cls = 0, sep = 0;
  Numbers kinds;
};

// How many instances differ from the file's in any of their lists.
std::size_t differences(const Group& group, const std::vector<Written>& written) {
  const auto ragged = [&](const char* name) { return group.file.read_ragged<std::int64_t>(group.name + "/" + name); };
  const auto before = ragged("tokens_before"), tokens = ragged("tokens"), segments = ragged("segments");
  const auto positions = ragged("masked_positions"), labels = ragged("masked_labels");
  const Numbers random_next = numbers(group.file, group.name + "/is_random_next");
  for (const std::size_t rows :
       {before.size(), tokens.size(), segments.size(), positions.size(), labels.size(), random_next.size()}) {
    REQUIRE(rows == written.size());
  }
  std::size_t different = 0;
  for (std::size_t i = 0; i < written.size(); ++i) {
    const Written& w = written[i];
    const bool equal = w.before == before[i] && w.tokens == tokens[i] && w.segments == segments[i] &&
                       w.positions == positions[i] && w.labels == labels[i] && w.random_next == random_next[i];
    different += equal ? 0 : 1;
  }
  return different;
}

}  // namespace

TEST_CASE("scripted draws give the published instances and masks", "[golden]") {
  for_each_file_with("instances/pieces", [](const GoldenFile& file) {
    for (const std::string& name : file.groups("instances")) {
      if (name == "sentences") continue;  // ragged
      CAPTURE(name);
      Group group(file, name);
      const std::vector<Written> written = group.all();
      CHECK(differences(group, written) == 0);
      std::printf("instances/%s: %zu instances equal in tokens, segments, positions, labels and next sentence\n",
                  name.c_str(), written.size());
    }
    file.require_all_read("instances");
  });
}

TEST_CASE("instances of another rule are not the published ones", "[golden]") {
  for_each_file_with("instances/pieces", [](const GoldenFile& file) {
    Group group(file, "whole_word");
    std::vector<Written> written = group.all();
    // An instance whose words are all too long has no label.
    const auto labelled = std::ranges::find_if(written, [](const Written& w) { return !w.labels.empty(); });
    REQUIRE(labelled != written.end());
    ++labelled->labels[0];
    CHECK(differences(group, written) == 1);
    // Choosing pieces instead of words needs an order of another length.
    group.rules.whole_words = false;
    CHECK_THROWS_AS(group.all(), std::logic_error);
  });
}

TEST_CASE("the number of pieces to predict is the published one for every length", "[golden]") {
  for_each_file_with("masking/length", [](const GoldenFile& file) {
    const Numbers lengths = numbers(file, "masking/length");
    for (std::size_t i = 0; i < lengths.size(); ++i) REQUIRE(lengths[i] == lengths[0] + static_cast<std::int64_t>(i));
    const double probability =
        file.has_attribute("masking", "masked_lm_prob") ? file.real_attribute("masking", "masked_lm_prob") : 0.15;
    std::size_t compared = 0;
    for (const std::string& name : file.data_sets("masking")) {
      if (name == "length") continue;
      const std::string prefix = "num_to_predict_cap";
      REQUIRE(name.starts_with(prefix));
      const std::int64_t cap = std::stoll(name.substr(prefix.size()));
      const Numbers expected = numbers(file, "masking/" + name);
      REQUIRE(expected.size() == lengths.size());
      for (std::size_t i = 0; i < lengths.size(); ++i, ++compared) {
        CAPTURE(lengths[i], cap);
        CHECK(pretrain::number_to_mask(lengths[i], probability, cap) == expected[i]);
      }
    }
    CHECK(compared > 0);
    file.require_all_read("masking");
    std::printf("masking: %zu counts equal\n", compared);
  });
}

}  // namespace etc::test
