// Package provider holds what the providers below it share: an HTTP client that
// follows no redirect, a watch over one streamed call, and the wording of what
// goes wrong in it as a *goclaw.ProviderError.
//
// It knows no vendor's SDK. Invariants: no error text holds the key; every
// failure says whether the same request may succeed later; a call that is
// silent for too long ends.
package provider
