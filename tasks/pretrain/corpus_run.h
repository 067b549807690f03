// The run of a preparation whose examples need the whole text: a random next sentence comes from any other document.
//
//   1. text      each input file → pieces, sentences and where documents begin, in files beside the output (token_store.h);
//                all threads cut, one writes in order. Kept until the end, so that a killed run goes on behind it.
//   2. documents one walk over their begins; short ones are left out.
//   3. instances every copy of every document → which pieces, 80 bytes each, into a file; draws are keyed by copy and
//                document, so threads share documents.
//   4. examples  in a random order of all instances (random_order.h), read back from both files, masked, written.
//
// Two shuffles of the published preparation are one here: documents are not shuffled first, because draws of a document
// depend on its number alone and the instances of all copies are shuffled at the end.
//
// Several processes share step 1 by records and step 4 by instances; the first one does the rest. Step 4 reads files beside
// the output: a process on a machine that has not got them makes no examples.
//
// Memory: windows of work, whatever the size of the text; in step 3 the instances of one document. Files beside the
// output: 4 bytes a piece, 8 a sentence, 16 a document, 80 an instance, until the output is complete.
#pragma once

#include "tasks/prepare/run.h"

namespace etc::pretrain {

class PretrainPreparation;

// See prepare::run, which calls it. Throws Error when no document is left.
prepare::Counts run_corpus(const PretrainPreparation& preparation, const prepare::RunOptions& options);

}  // namespace etc::pretrain
