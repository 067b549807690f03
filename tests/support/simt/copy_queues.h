// The queues of copies of an emulated device. What is put on one happens as late as it may: when the host waits for an
// event behind it, or when a kernel or a library's call, which come after it on the compute queue, begins. Only then is
// the source read. So memory that is used again too early holds what it should not.
#pragma once

namespace etc::simt {

// Everything on the compute queue, and of the other what that waits for.
void run_queued_work();

// Nothing of it happens, and every event is over.
void drop_queued_work();

}  // namespace etc::simt
