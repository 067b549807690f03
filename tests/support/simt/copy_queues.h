// The copy queues of an emulated device. Queued work runs as late as possible: when the host waits for a later event,
// or when a kernel or a library call, which follows it on the compute queue, begins. Only then is the source read, so
// memory that is reused too early gives wrong values.
#pragma once

namespace etc::simt {

// Runs everything on the compute queue, and the work of the other queue that it waits for.
void run_queued_work();

// Discards all queued work; every event counts as complete.
void drop_queued_work();

}  // namespace etc::simt
