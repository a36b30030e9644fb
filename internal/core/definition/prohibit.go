package definition

import (
	"fmt"
	"slices"
	"strings"

	"goclaw/internal/core/frontmatter"
)

// prohibitions are keys of other systems that forbid something. What can't be
// kept here degrades the file: it is never lost.
func (p *parser) prohibitions() {
	changes := []string{"apply_patch", "edit", "write"}
	if f, ok := p.seen["permissionMode"]; ok {
		if v := f.Value; v.Kind == frontmatter.String && strings.EqualFold(v.Text, "plan") {
			p.tools.deny = append(p.tools.deny, changes...)
		} else {
			p.leave(f)
		}
	}
	if f, ok := p.seen["readonly"]; ok && p.yes(f) {
		p.tools.deny = append(p.tools.deny, append(changes, "exec")...)
	}
	if f, ok := p.seen["disable"]; ok && p.yes(f) {
		p.add(LevelDegrade, f.Line, f.Col, fmt.Sprintf("the file switches itself off (%s)", f.Key), "remove the key to use it")
	}
	if f, ok := p.seen["enabled"]; ok && !p.yes(f) {
		p.add(LevelDegrade, f.Line, f.Col, "the file switches itself off (enabled)", "remove the key to use it")
	}
	if f, ok := p.seen["disable-model-invocation"]; ok && p.yes(f) {
		if p.Visibility == "" {
			p.Visibility = "internal"
		}
		p.add(LevelNotice, f.Line, f.Col, "disable-model-invocation is read as visibility: internal", "nothing to do")
	}
	if f, ok := p.seen["hooks"]; ok {
		p.hooks(f)
	}
}

// hooks are Claude Code's: commands at certain moments, none of which is run
// here. Those before a tool can refuse it.
func (p *parser) hooks(f frontmatter.Field) {
	for _, event := range f.Value.Fields {
		empty := event.Value.Kind == frontmatter.Null || event.Value.Kind == frontmatter.List && len(event.Value.Items) == 0
		if guards := event.Key == "PreToolUse" || event.Key == "PermissionRequest"; guards && !empty {
			p.add(LevelDegrade, event.Line, event.Col,
				fmt.Sprintf("hooks are not run here, and what the hook %s would refuse would be allowed", event.Key),
				"write what it forbids as disallowedTools, such as Bash(rm:*), and remove it; until then it can't be spawned")
			return
		}
	}
	p.undone = append(p.undone, f)
}

// isolation is Claude Code's git worktree of the worker's own. It comes last: it
// matters only to a worker that can change files.
func (p *parser) isolation() {
	f, ok := p.seen["isolation"]
	if !ok || f.Value.Kind != frontmatter.String || strings.EqualFold(f.Value.Text, "none") {
		return
	}
	if !slices.ContainsFunc(p.ResolvedTools(), func(t string) bool { return slices.Contains([]string{"apply_patch", "edit", "exec", "write"}, t) }) {
		p.undone = append(p.undone, f)
		return
	}
	p.at(LevelDegrade, f.Value, fmt.Sprintf("isolation: %s is not done here: it would change the workspace's own files", f.Value.Text),
		"remove the key to let it; until then it can't be spawned")
}

// planning warns of commands in plan mode, of which only some would change
// something.
func (p *parser) planning() {
	f, ok := p.seen["permissionMode"]
	if !ok || !strings.EqualFold(f.Value.Text, "plan") || !slices.Contains(p.ResolvedTools(), "exec") {
		return
	}
	p.at(LevelWarning, f.Value, "plan mode denies write and edit; commands (exec) can still change files", "add disallowedTools: Bash to be sure")
}
