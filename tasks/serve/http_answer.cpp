#include "etc_core/base/json.h"
#include "etc_core/base/words.h"
#include "tasks/serve/http_server.h"
#include "tasks/text/json_field.h"

namespace etc::serve {

HttpAnswer error_answer(int status, const std::string& message) {
  HttpAnswer answer;
  answer.status = status;
  answer.body = text::one_line({{"error", shortened(message, kToldBytes)}}) + "\n";
  return answer;
}

}  // namespace etc::serve
