package definition

import (
	"fmt"
	"slices"
	"strings"
)

// Catalog is what can be spawned by name, after files of nearer scopes took the
// names of those farther away.
type Catalog struct {
	all    []Definition // every file, scopes as given
	active []int        // indices of those that hold their name, by name
}

// NewCatalog takes the definitions of all scopes. rank tells how near a
// definition's scope is: the higher one wins. Of one rank, two with one name
// are both rejected: they keep the name, and neither can be spawned. A rejected
// file holds its name too, so that a broken file is never silently replaced by
// the one that it was to override.
func NewCatalog(all []Definition, rank func(Definition) int) Catalog {
	c := Catalog{all: slices.Clone(all)}
	for i := range c.all {
		c.all[i].Problems = slices.Clone(c.all[i].Problems)
	}
	c.rejectTwins(rank)
	byName := map[string]int{}
	for i, d := range c.all {
		key := d.key()
		j, taken := byName[key]
		switch {
		case !taken:
			byName[key] = i
		case rank(d) > rank(c.all[j]):
			c.all[i].Overrides = c.all[j].Path
			byName[key] = i
		case rank(d) < rank(c.all[j]) && (c.all[j].Overrides == "" || rankOf(c.all, c.all[j].Overrides, rank) < rank(d)):
			c.all[j].Overrides = d.Path
		}
	}
	for _, i := range byName {
		c.active = append(c.active, i)
	}
	slices.SortFunc(c.active, func(a, b int) int { return strings.Compare(c.all[a].key(), c.all[b].key()) })
	return c
}

// key is what two names have in common that mean one definition.
func (d Definition) key() string {
	if s := d.Slug(); s != "" {
		return s
	}
	return strings.ToLower(d.Name)
}

func rankOf(all []Definition, file string, rank func(Definition) int) int {
	for _, d := range all {
		if d.Path == file {
			return rank(d)
		}
	}
	return -1
}

func (c Catalog) rejectTwins(rank func(Definition) int) {
	type place struct {
		rank int
		key  string
	}
	twins := map[place][]int{}
	for i, d := range c.all {
		at := place{rank(d), d.key()}
		twins[at] = append(twins[at], i)
	}
	for _, same := range twins {
		for _, i := range same {
			for _, other := range same {
				if other != i {
					d := &c.all[i]
					line, col := 1, 1
					d.add(LevelError, line, col, fmt.Sprintf("the name %q is also that of %s", d.Name, c.all[other].Path), "rename one of them, or remove it")
				}
			}
			c.all[i].settle()
		}
	}
}

// All returns every definition, overridden ones among them.
func (c Catalog) All() []Definition { return slices.Clone(c.all) }

// Active returns the definitions that hold their name, sorted by it.
func (c Catalog) Active() []Definition {
	out := make([]Definition, len(c.active))
	for i, at := range c.active {
		out[i] = c.all[at]
	}
	return out
}

// Find returns the definition that a spawn means by name. It may be one that
// can't be spawned: see Blocked and Trusted.
func (c Catalog) Find(name string) (Definition, bool) {
	for _, i := range c.active {
		if c.all[i].Answers(name) {
			return c.all[i], true
		}
	}
	return Definition{}, false
}
