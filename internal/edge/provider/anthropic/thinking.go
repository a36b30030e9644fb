package anthropic

import (
	"slices"
	"strconv"
	"strings"

	sdk "github.com/anthropics/anthropic-sdk-go"
)

const (
	defaultMaxTokens  = 16384
	adaptiveMaxTokens = 32000
	minBudget         = 1024 // the API's floor
	minAnswer         = 1024 // what a budget leaves of a given ceiling
)

// generation is what a model's name tells about it. Names of other vendors
// give the zero value, which stands for the oldest models.
type generation struct {
	family       string // opus, sonnet, haiku, fable, mythos
	major, minor int
}

// parseGeneration reads names such as claude-opus-4-7, claude-3-7-sonnet-20250219,
// anthropic/claude-sonnet-4.5 and us.anthropic.claude-opus-4-6-v1:0.
func parseGeneration(model string) generation {
	_, rest, ok := strings.Cut(strings.ToLower(model), "claude")
	if !ok {
		return generation{}
	}
	words := strings.FieldsFunc(rest, func(r rune) bool { return strings.ContainsRune("-._/@:", r) })
	var g generation
	for i, word := range words {
		if slices.Contains([]string{"opus", "sonnet", "haiku", "fable", "mythos"}, word) {
			g.family = word
		}
		n, ok := versionNumber(word)
		if !ok || g.major != 0 {
			continue
		}
		g.major = n
		if i+1 < len(words) {
			g.minor, _ = versionNumber(words[i+1])
		}
	}
	return g
}

// versionNumber tells a version from a date.
func versionNumber(word string) (int, bool) {
	n, err := strconv.Atoi(word)
	if err != nil || n < 0 || len(word) > 2 {
		return 0, false
	}
	return n, true
}

func (g generation) atLeast(major, minor int) bool {
	return g.major > major || g.major == major && g.minor >= minor
}

// restless models can't stop thinking.
func (g generation) restless() bool {
	return g.family == "mythos" || g.family == "fable" || g.family == "opus" && g.atLeast(5, 5)
}

func (g generation) adaptive() bool     { return g.atLeast(4, 6) || g.restless() }
func (g generation) noSampling() bool   { return g.atLeast(4, 7) || g.restless() }
func (g generation) betweenTools() bool { return g.family == "sonnet" && g.atLeast(5, 5) }

// thinkingBudget is the budget of models that are told a number of tokens; 0
// is off.
func thinkingBudget(level string) int64 {
	switch level {
	case "low":
		return 2048
	case "medium":
		return 8192
	case "high":
		return 12000
	}
	return 0
}

// setThinking sets what depends on the model's generation: thinking, effort,
// the token ceiling and the temperature. p's messages are set already.
func setThinking(p *sdk.MessageNewParams, level string, maxTokens int, temperature *float64) {
	g := parseGeneration(p.Model)
	budget := thinkingBudget(level)
	on := budget > 0
	p.MaxTokens = int64(maxTokens)
	if maxTokens <= 0 {
		p.MaxTokens = defaultMaxTokens
	}
	switch {
	case on && g.adaptive():
		p.Thinking.OfAdaptive = &sdk.ThinkingConfigAdaptiveParam{Display: sdk.ThinkingConfigAdaptiveDisplaySummarized}
		p.OutputConfig.Effort = sdk.OutputConfigEffort(level)
		if maxTokens <= 0 {
			p.MaxTokens = adaptiveMaxTokens
		}
	case on:
		if maxTokens <= 0 {
			p.MaxTokens += budget
		}
		budget = min(budget, p.MaxTokens-minAnswer)
		on = budget >= minBudget && thinkingMayStart(p.Messages)
		if on {
			p.Thinking = sdk.ThinkingConfigParamOfEnabled(budget)
		}
	case g.restless():
		p.OutputConfig.Effort = sdk.OutputConfigEffortLow
	case g.betweenTools():
		p.Thinking.OfBetweenTools = &sdk.ThinkingConfigBetweenToolsParam{}
	case g.atLeast(5, 0):
		p.Thinking.OfDisabled = &sdk.ThinkingConfigDisabledParam{}
	}
	if temperature != nil && !on && !g.noSampling() {
		p.Temperature = sdk.Float(*temperature)
	}
}

// thinkingMayStart reports whether a budget is allowed: in the middle of a
// tool loop the API demands that the turn began with thinking, which it did
// not if another model, or this one without thinking, began it.
func thinkingMayStart(messages []sdk.MessageParam) bool {
	n := len(messages)
	if n < 2 || messages[n-1].Role != sdk.MessageParamRoleUser || messages[n-2].Role != sdk.MessageParamRoleAssistant {
		return true
	}
	results := slices.ContainsFunc(messages[n-1].Content, func(b sdk.ContentBlockParamUnion) bool { return b.OfToolResult != nil })
	first := messages[n-2].Content[0]
	return !results || first.OfThinking != nil || first.OfRedactedThinking != nil
}
