// A process that speaks to nobody: one of several, of which another shows messages, progress and results.
#pragma once

namespace etc {

// From now on messages of the log, progress and results go nowhere. Errors that end the process are still printed.
void be_silent();
bool is_silent();

}  // namespace etc
