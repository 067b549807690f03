// The worked page of task-openkp 1.3 and a vocabulary for it.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "data/text/tokenizer.h"
#include "etc_core/base/json.h"
#include "tasks/openkp/schema.h"
#include "tests/support/folders.h"
#include "tests/tasks/small_tokenizer.h"

namespace etc::test {

// Ids 11 … 19: blue lake tr ##out guide fish ##ing at dawn.
inline std::unique_ptr<data::Tokenizer> small_vocabulary() {
  return tokenizer_of("[UNK]\n" + unused_entries(1, 11) +
                      vocabulary_entries({"blue", "lake", "tr", "##out", "guide", "fish", "##ing", "at", "dawn"}));
}

// Bits of the feature `indicators` by the names the published features have.
inline std::map<std::string, int> indicator_bits() {
  return {{"block", openkp::kBlock},
          {"inline", openkp::kInline},
          {"heading", openkp::kHeading},
          {"leaf", openkp::kLeaf},
          {"bold", openkp::kBold},
          {"parent_heading", openkp::kParentHeading},
          {"parent_leaf", openkp::kParentLeaf},
          {"parent_bold", openkp::kParentBold}};
}

inline Json box(double x, double width, double y, double height, double block, double heading, double leaf, double font,
                double bold) {
  return {x, width, y, height, block, 0.0, heading, leaf, font, bold};
}

inline Json element(const std::string& text, int start, int end, Json own, const Json& parent) {
  for (const Json& number : parent) own.push_back(number);
  return {{"Id", 7}, {"text", text}, {"feature", own}, {"start_idx", start}, {"end_idx", end}};
}

// The record of task-openkp 1.3.
inline Json worked_elements() {
  const Json heading = box(40, 600, 120, 36, 1, 1, 0, 28, 0), paragraph = box(40, 600, 176, 24, 1, 0, 1, 16, 0);
  return {element("Blue Lake Trout Guide", 0, 4, heading, heading),
          element("Fishing blue lake trout", 4, 8, box(40, 310, 180, 18, 0, 0, 0, 16, 1), paragraph),
          element("at dawn", 8, 10, box(350, 80, 180, 18, 0, 0, 0, 16, 0), paragraph)};
}

inline Json worked_page(const Json& elements, const Json& phrases) {
  Json page = {{"url", "http://ex.org/a"},
               {"text", "Blue Lake Trout Guide Fishing blue lake trout at dawn"},
               {"VDOM", json_line(elements)}};
  if (!phrases.is_null()) page["KeyPhrases"] = phrases;
  return page;
}

inline const Json kWorkedPhrases = {{"Blue", "Lake", "Trout"}, {"trout", "at"}, {"Fishing"}, Json::array()};

}  // namespace etc::test
