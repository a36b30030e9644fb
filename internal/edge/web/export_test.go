package web

// Patterns lists every route and whether it is open to those without a token.
func Patterns() map[string]bool {
	open := map[string]bool{}
	for _, r := range new(server).routes() {
		open[r.pattern] = r.open
	}
	return open
}

// CallID is what a client knows a call by.
func CallID(run string, reply int, id string) string { return callID(run, reply, id) }

// ParseCallID tells which reply of which run made a call.
func ParseCallID(id string) (run string, reply int, ok bool) {
	p, ok := parseCallID(id)
	return p.run, p.reply, ok
}
