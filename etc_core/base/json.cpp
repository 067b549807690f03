#include "etc_core/base/json.h"

#include <algorithm>

#include "etc_core/base/error.h"
#include "etc_core/base/files.h"
#include "etc_core/base/words.h"

namespace etc {

namespace {
constexpr int kMaxDepth = 512;  // values are destroyed recursively; the limit must not depend on the stack size
// For configurations and other small files. Data, such as predictions, are read with read_file and parse_json.
constexpr std::uint64_t kMaxFileBytes = 64ull << 20;
constexpr char kNul = '\0';              // ends a text for the library's parser, which then ignores the rest
constexpr std::size_t kToldBytes = 200;  // limit for the parser's message, which quotes the input

// Builds a value and throws at the first error. (The library's own parser with a callback scans a whole list at the end
// of each object in it.)
class StrictBuilder final : public nlohmann::json_sax<Json> {
 public:
  StrictBuilder(Json& value, const std::string& where) : value_(value), where_(where) {}

  bool null() override { return put(nullptr); }
  bool boolean(bool value) override { return put(value); }
  bool number_integer(number_integer_t value) override { return put(value); }
  bool number_unsigned(number_unsigned_t value) override { return put(value); }
  bool number_float(number_float_t value, const string_t&) override { return put(value); }
  bool string(string_t& value) override { return put(std::move(value)); }
  bool binary(binary_t&) override { return false; }  // not in texts
  bool start_object(std::size_t) override { return open(Json::object()); }
  bool end_object() override { return close(); }
  bool start_array(std::size_t) override { return open(Json::array()); }
  bool end_array() override { return close(); }

  bool key(string_t& name) override {
    const auto [member, fresh] = open_.back()->get_ref<Json::object_t&>().try_emplace(std::move(name));
    if (!fresh) fail(where_, "duplicate key {}{}", shortened(Json(member->first).dump(), kToldBytes), innermost());
    member_ = &member->second;
    return true;
  }

  bool parse_error(std::size_t, const std::string&, const nlohmann::detail::exception& error) override {
    std::string_view what = error.what();
    const auto bracket = what.find("] ");  // drop the library's own prefix
    if (bracket != std::string_view::npos) what.remove_prefix(bracket + 2);
    // The quoted input may be long, and end inside a character: such bytes become U+FFFD.
    fail(where_, "not valid JSON: {}", try_parse_json(json_line(Json(shortened(what, kToldBytes)))).get<std::string>());
  }

 private:
  // The path of the innermost open value, " in model" or " in layers[2]"; empty: it is the whole document.
  std::string innermost() const {
    std::string path;
    for (std::size_t i = 1; i < open_.size(); ++i) {
      const Json& outer = *open_[i - 1];
      if (outer.is_array()) {
        path += fmt::format("[{}]", outer.size() - 1);
        continue;
      }
      const auto& members = outer.get_ref<const Json::object_t&>();
      const auto own =
          std::find_if(members.begin(), members.end(), [&](const auto& m) { return &m.second == open_[i]; });
      path += (path.empty() ? "" : ".") + own->first;
    }
    return path.empty() ? "" : " in " + shortened(path, kToldBytes);
  }

  // Adds a value to the innermost open value. Pointers to it stay valid until that value is closed.
  bool put(Json value) {
    place(std::move(value));
    return true;
  }
  Json* place(Json value) {
    if (open_.empty()) return &(value_ = std::move(value));
    if (open_.back()->is_array()) return &open_.back()->get_ref<Json::array_t&>().emplace_back(std::move(value));
    return &(*member_ = std::move(value));
  }
  bool open(Json value) {
    if (std::ssize(open_) >= kMaxDepth) fail(where_, "nesting: expected at most {} levels", kMaxDepth);
    open_.push_back(place(std::move(value)));
    return true;
  }
  bool close() {
    open_.pop_back();
    return true;
  }

  Json& value_;
  const std::string& where_;
  std::vector<Json*> open_;  // objects and lists, the innermost last
  Json* member_ = nullptr;   // of the innermost object, whose key was read last
};

}  // namespace

Json parse_json(std::string_view text, const std::string& where) {
  Json value;
  StrictBuilder builder(value, where);
  Json::sax_parse(text.begin(), text.end(), &builder);
  if (const std::size_t at = text.find(kNul); at != std::string_view::npos) {
    fail(where, "not valid JSON: a NUL byte at byte {}", at);
  }
  return value;
}

Json read_json_file(const std::filesystem::path& path) {
  return parse_json(read_file(path, kMaxFileBytes), path.string());
}

Json try_parse_json(std::string_view text) {
  if (text.find(kNul) != std::string_view::npos) return Json(Json::value_t::discarded);
  return Json::parse(text.begin(), text.end(), nullptr, false);
}

std::string json_line(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}
std::string json_line(const OrderedJson& json) {
  return json.dump(-1, ' ', false, OrderedJson::error_handler_t::replace);
}

std::string json_text(const Json& json) {
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace etc
