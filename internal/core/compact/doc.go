// Package compact decides how a long conversation is shortened for the model:
// which tool results are shown cut, up to which run a summary stands for the
// record, what the model is asked for it, and what stands there if it gives
// none.
//
// It never touches the record, which keeps everything, and never cuts within a
// run: a call and its result stay together, because only whole runs are
// summarised and a cut result stays a result.
package compact
