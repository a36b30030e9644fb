package prefix_test

import (
	"fmt"

	"goclaw/internal/core/prefix"
)

func ExampleDiff() {
	user := func(text string) prefix.Request {
		return prefix.Request{Parts: []prefix.Part{
			{Kind: prefix.Section, Name: "section identity", Text: "You are kind."},
			{Kind: prefix.Section, Name: "section file:USER.md", Text: " Ann lives in " + text},
		}}
	}
	d := prefix.Diff(user("Rome."), user("Oslo."))
	fmt.Printf("equal up to byte %d, then in %s: %q against %q\n", d.Bytes, d.A.Part, d.A.After, d.B.After)
	// Output: equal up to byte 27, then in section file:USER.md: "Rome." against "Oslo."
}
