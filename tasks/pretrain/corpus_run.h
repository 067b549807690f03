// The run of a preparation whose examples need the whole text: a random next sentence comes from any other document.
//
//   1. text      Each input file → pieces, sentences and document starts, in temporary files beside the output
//                (token_store.h). All threads cut, one writes in order. The files are kept until the end, so a killed run
//                resumes after them.
//   2. documents One pass over the document starts; short documents are left out.
//   3. instances For every copy of every document, the piece ranges of its instances, 80 bytes each, in a file. Draws are
//                keyed by copy and document, so documents can be distributed over threads.
//   4. examples  All instances in a random order (random_order.h): read from both files, masked, written.
//
// The published preparation shuffles twice. Here documents are not shuffled first, because the draws of a document depend on
// its number alone and the instances of all copies are shuffled at the end.
//
// With several processes, step 1 is divided by records and step 4 by instances; the first process does the rest. Step 4
// reads the files beside the output: a process on a machine without these files makes no examples.
//
// Memory: windows of fixed size, whatever the size of the text; in step 3 the instances of at most 4096 documents.
// Temporary files beside the output, until it is complete: 4 bytes per piece, 8 per sentence, 24 per document, 80 per
// instance.
#pragma once

#include "tasks/prepare/run.h"

namespace etc::pretrain {

class PretrainPreparation;

// Called by prepare::run, whose contract applies. Throws Error when no document is left.
prepare::Counts run_corpus(const PretrainPreparation& preparation, const prepare::RunOptions& options);

}  // namespace etc::pretrain
