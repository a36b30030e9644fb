package web

// Patterns lists every route and whether it is open to those without a token.
func Patterns() map[string]bool {
	open := map[string]bool{}
	for _, r := range new(server).routes() {
		open[r.pattern] = r.open
	}
	return open
}
