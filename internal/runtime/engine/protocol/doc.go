// Package protocol explores the engine's protocol exhaustively: two processes,
// a clock that jumps, crashes at each point, processes that are frozen past
// their lease and wake, planned stops, cancellations and messages, in every
// order that can matter. It holds tests only.
//
// What is real: the store (edge/store/memory, which the other stores are
// compared with by storetest), the decisions of core/turn and core/announce.
// What is modelled: the order in which internal/runtime/engine calls them, one
// store call or one effect at a time.
//
//	load, recover, unmoved       job.go        job_test.go
//	assemble, finish, suspend    job.go wait.go    job_test.go, end_test.go
//	callModel, callTools         model.go tools.go calls_test.go
//	close, returned, lastWords   end.go        end_test.go
//	dispatch, wakeRequesters     dispatch.go requesters.go dispatch_test.go
//	beat, Release, cancellations dispatch.go   faults_test.go
//
// A change of that order in the engine is to be made here as well. Budgets,
// rates, the pause and the files of a prompt are left out: no other process
// sees them.
package protocol
