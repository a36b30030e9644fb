package goclaw

import "errors"

// badRequest is an error that the sender of a request can mend.
type badRequest string

func (e badRequest) Error() string { return string(e) }

// BadRequest says, in one line, what is wrong with a request and what to do.
func BadRequest(text string) error { return badRequest(text) }

// IsBadRequest reports whether the sender of the request can mend err.
func IsBadRequest(err error) bool {
	var b badRequest
	return errors.As(err, &b)
}
