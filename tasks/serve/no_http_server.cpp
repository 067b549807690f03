// Replaces http_server.cpp in a build without cpp-httplib.
#include "etc_core/base/error.h"
#include "tasks/serve/http_server.h"

namespace etc::serve {

struct HttpServer::Impl {};

HttpServer::HttpServer(HttpHandler&, const HttpLimits&) {
  fail("etc serve", "this program was built without cpp-httplib (install libcpp-httplib-dev and build it again)");
}
HttpServer::~HttpServer() = default;
int HttpServer::listen(const std::string&, int) {
  return 0;
}
void HttpServer::run() {}
void HttpServer::stop() {}
std::int64_t HttpServer::connections() const {
  return 0;
}

}  // namespace etc::serve
