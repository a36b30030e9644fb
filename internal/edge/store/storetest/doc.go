// Package storetest is the conformance suite of GoClaw's stores: what every
// implementation of the engine's store must do, as tests. An implementation
// passes it with
//
//	func TestStore(t *testing.T) {
//		storetest.Run(t, func(t *testing.T) storetest.Store { … })
//	}
//
// Agree compares it with another one, its model, doing random things to both.
// It repeats the engine's interfaces instead of importing them, because an
// adapter never imports what uses it; that the two agree is checked where they
// meet. It refuses to look behind the interface: durability and files are
// tested by the implementation that promises them.
package storetest
