#include "etc_core/checkpoint/convert/pickle/pickle.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <unordered_map>

#include "etc_core/base/error.h"

namespace etc::convert {

namespace {

using Kind = PickleValue::Kind;

constexpr std::size_t kMaxValues = 500'000;
constexpr std::size_t kMaxRank = 64;  // PyTorch's own limit
// Limits for all copies together, because a few bytes of a program can copy memoised values many times.
constexpr std::size_t kMaxCopiedItems = 8 * kMaxValues, kMaxCopiedBytes = 16 * kMaxPickleBytes;

const std::string kOrderedDict = "collections.OrderedDict";
const std::string kRebuildTensor = "torch._utils._rebuild_tensor_v2";
const std::string kRebuildParameter = "torch._utils._rebuild_parameter";

struct StorageType {
  const char* global;
  StoredDtype dtype;
};
constexpr std::array<StorageType, 10> kStorageTypes = {{{"torch.FloatStorage", StoredDtype::f32},
                                                        {"torch.HalfStorage", StoredDtype::f16},
                                                        {"torch.BFloat16Storage", StoredDtype::bf16},
                                                        {"torch.DoubleStorage", StoredDtype::f64},
                                                        {"torch.LongStorage", StoredDtype::i64},
                                                        {"torch.IntStorage", StoredDtype::i32},
                                                        {"torch.ShortStorage", StoredDtype::i16},
                                                        {"torch.CharStorage", StoredDtype::i8},
                                                        {"torch.ByteStorage", StoredDtype::u8},
                                                        {"torch.BoolStorage", StoredDtype::boolean}}};

const StorageType* storage_type(const std::string& global) {
  const auto found = std::find_if(kStorageTypes.begin(), kStorageTypes.end(),
                                  [&](const StorageType& type) { return global == type.global; });
  return found == kStorageTypes.end() ? nullptr : &*found;
}

bool is_allowed(const std::string& global) {
  return global == kOrderedDict || global == kRebuildTensor || global == kRebuildParameter ||
         storage_type(global) != nullptr;
}

}  // namespace

const char* pickle_kind_name(Kind kind) {
  constexpr std::array<const char*, 11> names = {"None",     "a boolean", "an integer", "a number",
                                                 "a string", "a tuple",   "a list",     "a dictionary",
                                                 "a name",   "a storage", "a tensor"};
  return names[static_cast<std::size_t>(kind)];
}

// One run: the stack, the memo, and the position in the bytes.
class PickleMachine::Program {
 public:
  Program(PickleMachine& machine, std::string_view bytes, const std::string& where)
      : machine_(machine), bytes_(bytes.substr(0, kMaxPickleBytes)), where_(where) {}

  const PickleValue& run() {
    if (take(1)[0] != '\x80') refuse("not a pickle");
    if (const int protocol = byte(); protocol != 2) refuse("protocol {}: expected 2", protocol);
    while (true) {
      operation_at_ = at_;
      const char operation = take(1)[0];
      if (operation == '.') {
        machine_.consumed_ = at_;
        return *pop();
      }
      execute(operation);
    }
  }

 private:
  template <typename... Args>
  [[noreturn]] void refuse(fmt::format_string<Args...> format, Args&&... args) const {
    fail(fmt::format("{}: pickle: byte {}", where_, operation_at_), "{}",
         fmt::format(format, std::forward<Args>(args)...));
  }

  // ---- Bytes. ----
  std::string_view take(std::size_t size) {
    if (size > bytes_.size() - at_) refuse("it ends too early, or is longer than {} bytes", kMaxPickleBytes);
    at_ += size;
    return bytes_.substr(at_ - size, size);
  }
  int byte() { return static_cast<unsigned char>(take(1)[0]); }
  template <typename T>
  T little_endian() {
    T value;
    std::memcpy(&value, take(sizeof value).data(), sizeof value);
    return value;
  }
  std::string line() {
    const std::size_t end = bytes_.find('\n', at_);
    if (end == std::string_view::npos) refuse("a name without an end");
    const std::string text(bytes_.substr(at_, end - at_));
    at_ = end + 1;
    return text;
  }

  // ---- Values. ----
  PickleValue& make(Kind kind) {
    if (machine_.values_.size() == kMaxValues) refuse("more than {} values", kMaxValues);
    PickleValue& value = machine_.values_.emplace_back();
    value.kind = kind;
    return value;
  }
  void push(PickleValue& value) { stack_.push_back(&value); }
  void push_integer(std::int64_t integer, Kind kind = Kind::integer) {
    PickleValue& value = make(kind);
    value.integer = integer;
    push(value);
  }
  void push_text(std::string_view text) {
    PickleValue& value = make(Kind::text);
    value.text = text;
    push(value);
  }

  // ---- Stack. ---- Values below a mark cannot be popped before the mark.
  std::size_t floor() const { return marks_.empty() ? 0 : marks_.back(); }
  PickleValue* pop() {
    if (stack_.size() <= floor()) refuse("the stack is empty");
    PickleValue* value = stack_.back();
    stack_.pop_back();
    return value;
  }
  PickleValue* top() {
    if (stack_.size() <= floor()) refuse("the stack is empty");
    return stack_.back();
  }
  std::vector<const PickleValue*> pop_to_mark() {
    if (marks_.empty()) refuse("no mark on the stack");
    const auto first = stack_.begin() + static_cast<std::ptrdiff_t>(marks_.back());
    std::vector<const PickleValue*> items(first, stack_.end());
    stack_.erase(first, stack_.end());
    marks_.pop_back();
    return items;
  }

  void push_tuple(std::size_t size) {
    PickleValue& tuple = make(Kind::tuple);
    tuple.items.resize(size);
    for (std::size_t i = size; i-- > 0;) tuple.items[i] = pop();
    push(tuple);
  }
  void push_tuple_to_mark() {
    PickleValue& tuple = make(Kind::tuple);
    tuple.items = pop_to_mark();
    push(tuple);
  }
  void append(PickleValue* to, Kind kind, const std::vector<const PickleValue*>& items) {
    if (to->kind != kind) refuse("items for {}: expected {}", pickle_kind_name(to->kind), pickle_kind_name(kind));
    if (kind == Kind::dictionary && items.size() % 2 != 0) refuse("a key without a value");
    copied_items_ += items.size();
    if (copied_items_ > kMaxCopiedItems) refuse("more than {} items in lists and dictionaries", kMaxCopiedItems);
    to->items.insert(to->items.end(), items.begin(), items.end());
  }
  void append_to_mark(Kind kind) {
    const auto items = pop_to_mark();
    append(top(), kind, items);
  }

  void put(std::uint32_t index) {
    if (memo_.size() == kMaxValues) refuse("more than {} remembered values", kMaxValues);
    memo_[index] = top();
  }
  void get(std::uint32_t index) {
    const auto found = memo_.find(index);
    if (found == memo_.end()) refuse("nothing remembered under {}", index);
    stack_.push_back(found->second);
  }

  void push_global() {
    const std::string module = line();
    const std::string name = module + "." + line();
    if (!is_allowed(name)) {
      refuse("{} is not a name that weights need: refused (only data is read, nothing is run)", name);
    }
    PickleValue& value = make(Kind::global);
    value.text = name;
    push(value);
  }

  // ---- Values of the allowed names. ----
  const PickleValue& argument(const PickleValue& arguments, std::size_t i, Kind kind) const {
    if (i >= arguments.items.size()) refuse("argument {} is missing", i);
    if (arguments.items[i]->kind != kind) {
      refuse("argument {}: expected {}, got {}", i, pickle_kind_name(kind), pickle_kind_name(arguments.items[i]->kind));
    }
    return *arguments.items[i];
  }
  std::int64_t count_argument(const PickleValue& arguments, std::size_t i) const {
    const std::int64_t count = argument(arguments, i, Kind::integer).integer;
    if (count < 0) refuse("argument {}: expected a number >= 0, got {}", i, count);
    return count;
  }
  std::vector<std::int64_t> counts(const PickleValue& tuple) const {
    if (tuple.items.size() > kMaxRank) refuse("expected at most {} dimensions, got {}", kMaxRank, tuple.items.size());
    std::vector<std::int64_t> values;
    for (std::size_t i = 0; i < tuple.items.size(); ++i) values.push_back(count_argument(tuple, i));
    return values;
  }

  void reduce() {
    const PickleValue* arguments = pop();
    const PickleValue* callee = pop();
    if (callee->kind != Kind::global || arguments->kind != Kind::tuple) {
      refuse("a call of {} with {}", pickle_kind_name(callee->kind), pickle_kind_name(arguments->kind));
    }
    if (callee->text == kOrderedDict) {
      push(dictionary(*arguments));
    } else if (callee->text == kRebuildTensor) {
      push(tensor(*arguments));
    } else if (callee->text == kRebuildParameter) {
      PickleValue& copy = make(Kind::tensor);
      copy.view = std::make_unique<TensorView>(*argument(*arguments, 0, Kind::tensor).view);
      charge(*copy.view);
      push(copy);
    } else {
      refuse("a call of {}", callee->text);
    }
  }

  // Counts the memory that a storage or a tensor takes besides its value.
  void charge(const TensorView& view) {
    copied_bytes_ += view.storage.size() + (view.shape.size() + view.strides.size()) * sizeof(std::int64_t);
    if (copied_bytes_ > kMaxCopiedBytes) refuse("more than {} bytes of storages' names and sizes", kMaxCopiedBytes);
  }

  // OrderedDict(), or OrderedDict([(key, value), …]) as Python 2 wrote it.
  PickleValue& dictionary(const PickleValue& arguments) {
    PickleValue& value = make(Kind::dictionary);
    if (arguments.items.empty()) return value;
    for (const PickleValue* pair : argument(arguments, 0, Kind::list).items) {
      if ((pair->kind != Kind::list && pair->kind != Kind::tuple) || pair->items.size() != 2) {
        refuse("OrderedDict: expected pairs of key and value");
      }
      append(&value, Kind::dictionary, pair->items);
    }
    return value;
  }

  // _rebuild_tensor_v2(storage, offset, sizes, strides, requires_grad, hooks, …)
  PickleValue& tensor(const PickleValue& arguments) {
    PickleValue& value = make(Kind::tensor);
    value.view = std::make_unique<TensorView>(*argument(arguments, 0, Kind::storage).view);
    value.view->view_offset = count_argument(arguments, 1);
    value.view->shape = counts(argument(arguments, 2, Kind::tuple));
    value.view->strides = counts(argument(arguments, 3, Kind::tuple));
    charge(*value.view);
    if (value.view->shape.size() != value.view->strides.size()) {
      refuse("a tensor with {} sizes and {} strides", value.view->shape.size(), value.view->strides.size());
    }
    return value;
  }

  // A persistent id: ("storage", type, key, device, elements[, (key of the part, offset, elements) or None])
  void push_storage() {
    const PickleValue* id = pop();
    if (id->kind != Kind::tuple || argument(*id, 0, Kind::text).text != "storage") refuse("expected a storage");
    const StorageType* type = storage_type(argument(*id, 1, Kind::global).text);
    if (type == nullptr) refuse("{} is no type of numbers", id->items[1]->text);
    PickleValue& value = make(Kind::storage);
    value.view = std::make_unique<TensorView>();
    value.view->dtype = type->dtype;
    value.view->storage = argument(*id, 2, Kind::text).text;
    charge(*value.view);
    value.view->storage_size = count_argument(*id, 4);
    if (id->items.size() > 5 && id->items[5]->kind != Kind::none) {
      value.view->storage_offset = count_argument(argument(*id, 5, Kind::tuple), 1);
    }
    push(value);
  }

  void execute(char operation) {
    switch (static_cast<unsigned char>(operation)) {
      case '(':
        marks_.push_back(stack_.size());
        break;
      case 'N':
        push(make(Kind::none));
        break;
      case 0x88:
      case 0x89:
        push_integer(operation == '\x88', Kind::boolean);
        break;
      case 'K':
        push_integer(byte());
        break;
      case 'M':
        push_integer(little_endian<std::uint16_t>());
        break;
      case 'J':
        push_integer(little_endian<std::int32_t>());
        break;
      case 0x8a:
        push_integer(long_integer());
        break;
      case 'G':
        take(8);
        push(make(Kind::real));
        break;
      case 'X':
      case 'T':
        push_text(take(little_endian<std::uint32_t>()));
        break;
      case 'U':
        push_text(take(static_cast<std::size_t>(byte())));
        break;
      case ')':
        push_tuple(0);
        break;
      case 0x85:
      case 0x86:
      case 0x87:
        push_tuple(static_cast<std::size_t>(static_cast<unsigned char>(operation) - 0x84));
        break;
      case 't':
        push_tuple_to_mark();
        break;
      case ']':
        push(make(Kind::list));
        break;
      case 'a': {
        const PickleValue* item = pop();
        append(top(), Kind::list, {item});
        break;
      }
      case 'e':
        append_to_mark(Kind::list);
        break;
      case '}':
        push(make(Kind::dictionary));
        break;
      case 's': {
        const PickleValue* value = pop();
        const PickleValue* key = pop();
        append(top(), Kind::dictionary, {key, value});
        break;
      }
      case 'u':
        append_to_mark(Kind::dictionary);
        break;
      case 'q':
        put(static_cast<std::uint32_t>(byte()));
        break;
      case 'r':
        put(little_endian<std::uint32_t>());
        break;
      case 'h':
        get(static_cast<std::uint32_t>(byte()));
        break;
      case 'j':
        get(little_endian<std::uint32_t>());
        break;
      case 'c':
        push_global();
        break;
      case 'R':
        reduce();
        break;
      case 'b':  // attributes of a dictionary (PyTorch's _metadata): not data
        pop();
        if (top()->kind != Kind::dictionary) refuse("attributes for {}", pickle_kind_name(top()->kind));
        break;
      case 'Q':
        push_storage();
        break;
      default:
        refuse("operation 0x{:02x} is not one that weights need: refused", static_cast<unsigned char>(operation));
    }
  }

  std::int64_t long_integer() {
    const std::string_view bytes = take(static_cast<std::size_t>(byte()));
    if (bytes.size() > 8) refuse("an integer of {} bytes: expected at most 8", bytes.size());
    const bool negative = !bytes.empty() && (bytes.back() & 0x80) != 0;
    std::int64_t value = negative ? -1 : 0;
    std::memcpy(&value, bytes.data(), bytes.size());
    return value;
  }

  PickleMachine& machine_;
  const std::string_view bytes_;
  const std::string& where_;
  std::size_t at_ = 0, operation_at_ = 0, copied_items_ = 0, copied_bytes_ = 0;
  std::vector<PickleValue*> stack_;
  std::vector<std::size_t> marks_;
  std::unordered_map<std::uint32_t, PickleValue*> memo_;
};

const PickleValue& PickleMachine::run(std::string_view bytes, const std::string& where) {
  return Program(*this, bytes, where).run();
}

}  // namespace etc::convert
