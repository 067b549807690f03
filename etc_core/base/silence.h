// A process without output: one of several, of which another one prints messages, progress and results.
#pragma once

namespace etc {

// From now on log messages, progress and results are discarded. Errors that end the process are still printed.
void be_silent();
bool is_silent();

}  // namespace etc
