package scenarios

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/claudeless/claudeless/internal/base/diag"
)

// BindValue reads a pattern and checks that it has exactly the keys of its type.
func (p *Pattern) BindValue(patternTable diag.Value, binding *diag.BindRun) {
	if patternTable.Kind == diag.KindString {
		binding.ErrorWithHintf(patternTable, fmt.Sprintf("write { type = \"contains\", text = %q }", patternTable.Text), "a pattern must be a table, not a string")
		return
	}
	if p.bindIfOnlyTypeAndText(patternTable) {
		return
	}
	if kind, _ := patternTable.Field("type"); kind.Text == string(PatternNot) {
		bindNot(p, patternTable, binding)
		return
	}
	type plain Pattern
	binding.BindInto(patternTable, (*plain)(p))
	var keys []string
	switch p.Type {
	case PatternExact, PatternContains:
		keys = []string{"text"}
	case PatternRegex, PatternGlob:
		keys = []string{"pattern"}
	case PatternAll, PatternAnyOf:
		keys = []string{"patterns"}
	case PatternAny:
	default:
		return // already reported
	}
	reportMissingOrForeignKeys(patternTable, binding, "a pattern of type `"+string(p.Type)+"`", typedTableKeys{required: keys, knownKeys: []string{"text", "pattern", "patterns"}})
}

// bindIfOnlyTypeAndText reads the most common form of a pattern, a type and its text, and reports whether v has that form.
// It avoids reflection, because scenarios may have thousands of patterns.
func (p *Pattern) bindIfOnlyTypeAndText(v diag.Value) bool {
	if v.Kind != diag.KindTable {
		return false
	}
	fields := v.Fields()
	if len(fields) != 2 || fields[0].Key != "type" || fields[0].Value.Kind != diag.KindString || fields[1].Value.Kind != diag.KindString {
		return false
	}
	kind, text := PatternType(fields[0].Value.Text), fields[1].Value.Text
	switch {
	case (kind == PatternExact || kind == PatternContains) && fields[1].Key == "text":
		p.Type, p.Text = kind, text
	case (kind == PatternRegex || kind == PatternGlob) && fields[1].Key == "pattern":
		p.Type, p.Pattern = kind, text
	default:
		return false
	}
	return true
}

// bindNot reads a pattern of type `not`. In this type, the key `pattern` contains another pattern, not a string.
func bindNot(p *Pattern, v diag.Value, b *diag.BindRun) {
	var n struct {
		Type    PatternType `toml:"type"`
		Pattern *Pattern    `toml:"pattern,required"`
	}
	if b.BindInto(v, &n) {
		p.Type, p.Not = n.Type, n.Pattern
	}
}

// BindValue reads a string or a table. If the table has `steps`, keys that belong in a step are errors.
func (r *Response) BindValue(v diag.Value, b *diag.BindRun) {
	if v.Kind == diag.KindString {
		r.Text = v.Text
		return
	}
	if v.Kind != diag.KindTable {
		b.Errorf(v, "a response must be a string or a table, not %s", v.Kind)
		return
	}
	type plain Response
	b.BindInto(v, (*plain)(r))
	if steps, ok := v.Field("steps"); ok {
		for _, f := range v.Fields() {
			switch f.Key {
			case "text", "tool_calls", "delay_ms", "usage", "stop_reason":
				b.KeyErrorWithHintf(f, "move this key into a step", "`%s` cannot be combined with `steps`", f.Key)
			}
		}
		if len(steps.Items()) == 0 && steps.Kind == diag.KindArray {
			b.Errorf(steps, "`steps` must contain at least one step")
		}
	}
}

// BindValue reads a string, or a table that names a file.
func (t *Canned) BindValue(v diag.Value, b *diag.BindRun) {
	switch v.Kind {
	case diag.KindString:
		t.Text = v.Text
	case diag.KindTable:
		var named struct {
			File string `toml:"$file,required"`
		}
		b.BindInto(v, &named)
		t.File = named.File
	default:
		b.Errorf(v, "`result` must be a string or { \"$file\" = \"path\" }, not %s", v.Kind)
	}
}

// BindValue reads a step and checks that `blocks` is not combined with other content.
func (s *Step) BindValue(stepTable diag.Value, b *diag.BindRun) {
	type plain Step
	b.BindInto(stepTable, (*plain)(s))
	if _, ok := stepTable.Field("blocks"); !ok {
		return
	}
	for _, f := range stepTable.Fields() {
		if f.Key == "text" || f.Key == "thinking" || f.Key == "tool_calls" {
			b.KeyErrorWithHintf(f, "move this key into one of the blocks", "`%s` cannot be combined with `blocks`", f.Key)
		}
	}
}

// BindValue reads a frame and checks that it has exactly one kind of content.
func (f *Frame) BindValue(frameTable diag.Value, b *diag.BindRun) {
	type plain Frame
	b.BindInto(frameTable, (*plain)(f))
	n := 0
	for _, key := range []string{"json", "line", "stderr"} {
		if _, ok := frameTable.Field(key); ok {
			n++
		}
	}
	if n != 1 {
		b.Errorf(frameTable, "a frame needs exactly one of `json`, `line` and `stderr`")
	}
	if at, ok := frameTable.Field("json"); ok && !hasTypeKey(f.JSON) {
		b.Errorf(at, "`json` must be an object with a `type`")
	}
}

func hasTypeKey(raw json.RawMessage) bool {
	var object struct{ Type string }
	return json.Unmarshal(raw, &object) == nil && object.Type != ""
}

// BindValue reads a block and accepts only the keys of its type.
func (k *Block) BindValue(v diag.Value, b *diag.BindRun) {
	kind, _ := v.Field("type")
	switch BlockType(kind.Text) {
	case BlockText:
		b.BindAllowingOnlyKeys(v, k, "type", "text!", "citations")
		var list []json.RawMessage
		if at, ok := v.Field("citations"); ok && json.Unmarshal(k.Citations, &list) != nil {
			b.Errorf(at, "`citations` must be a list")
		}
	case BlockRedacted:
		b.BindAllowingOnlyKeys(v, k, "type", "data!")
	case BlockServerToolUse:
		var t struct {
			Type  BlockType       `toml:"type"`
			ID    string          `toml:"id"` // may be empty, unlike the id of a tool call
			Name  string          `toml:"name,required"`
			Input json.RawMessage `toml:"input"`
		}
		b.BindInto(v, &t)
		k.Type, k.ID, k.Name, k.Input = t.Type, t.ID, t.Name, t.Input
	case BlockThinking:
		b.BindAllowingOnlyKeys(v, k, "type", "thinking!")
	case BlockToolUse:
		b.BindAllowingOnlyKeys(v, k, append([]string{"type"}, toolCallKeys()...)...)
	case BlockRaw:
		b.BindAllowingOnlyKeys(v, k, "type", "json!")
		if at, ok := v.Field("json"); ok && !hasTypeKey(k.JSON) {
			b.Errorf(at, "`json` must be an object with a `type`")
		}
	default:
		if strings.HasSuffix(kind.Text, "_tool_result") {
			k.bindServerToolResult(v, b)
			return
		}
		b.BindAllowingOnlyKeys(v, &Block{}, append([]string{"type", "text", "thinking", "json"}, toolCallKeys()...)...)
	}
}

func toolCallKeys() []string {
	return []string{"tool", "input", "result", "is_error", "id", "expect", "delay_ms", "subagent"}
}

// BindValue reads the pace of a stream. It rejects speeds above 0 but below 0.001 tokens per second.
func (s *Stream) BindValue(paceTable diag.Value, b *diag.BindRun) {
	type plain Stream
	b.BindInto(paceTable, (*plain)(s))
	const slowest = 0.001
	if at, _ := paceTable.Field("tokens_per_second"); s.TokensPerSecond > 0 && s.TokensPerSecond < slowest {
		b.Errorf(at, "`tokens_per_second` must be 0 (as fast as possible) or at least %v", slowest)
	}
}

// bindServerToolResult reads the result of a tool that the API runs.
func (k *Block) bindServerToolResult(v diag.Value, b *diag.BindRun) {
	var t struct {
		Type      BlockType       `toml:"type" enum:"web_search_tool_result,web_fetch_tool_result,code_execution_tool_result,bash_code_execution_tool_result,text_editor_code_execution_tool_result,tool_search_tool_result"`
		ToolUseID string          `toml:"tool_use_id"`
		Content   json.RawMessage `toml:"content,required"`
	}
	b.BindInto(v, &t)
	k.Type, k.ToolUseID, k.Content = t.Type, t.ToolUseID, t.Content
}

// BindValue reads the name of a unit or a number of characters.
func (c *Chunk) BindValue(unitOrCharacterCount diag.Value, b *diag.BindRun) {
	switch unitOrCharacterCount.Kind {
	case diag.KindInt:
		if n, err := strconv.Atoi(unitOrCharacterCount.Text); err == nil && n > 0 {
			c.Size = n
			return
		}
	case diag.KindString:
		switch unitOrCharacterCount.Text {
		case "word", "token", "line":
			c.Unit = unitOrCharacterCount.Text
			return
		}
	default:
	}
	b.Errorf(unitOrCharacterCount, "`chunk` must be \"word\", \"token\", \"line\" or a number of characters above 0")
}

// BindValue reads a number, or text such as ">=2" or "<=3".
func (t *Times) BindValue(countOrComparison diag.Value, b *diag.BindRun) {
	text := strings.TrimSpace(countOrComparison.Text)
	number := strings.TrimLeft(text, "<>=≤≥")
	sign := strings.TrimSuffix(text, number)
	n, err := strconv.Atoi(strings.TrimSpace(number))
	if (countOrComparison.Kind != diag.KindInt && countOrComparison.Kind != diag.KindString) || err != nil || n < 0 || !slices.Contains([]string{"", ">=", "≥", "<=", "≤"}, sign) {
		b.Errorf(countOrComparison, "`times` must be an integer, or text such as \">=2\" or \"<=3\"")
		return
	}
	t.Min, t.Max = n, n
	switch sign {
	case ">=", "≥":
		t.Max = -1
	case "<=", "≤":
		t.Min = 0
	}
}

// BindValue reads the table and records the order of its servers.
func (m *MCP) BindValue(v diag.Value, b *diag.BindRun) {
	type plain MCP
	b.BindInto(v, (*plain)(m))
	servers, _ := v.Field("servers")
	for _, f := range servers.Fields() {
		m.names = append(m.names, f.Key)
	}
}

// ServerNames returns the names of the servers in file order.
func (m *MCP) ServerNames() []string { return append([]string(nil), m.names...) }

// BindValue reads an answer and checks that it has a text or an error, but not both.
func (a *Sampling) BindValue(samplingTable diag.Value, b *diag.BindRun) {
	type plain Sampling
	b.BindInto(samplingTable, (*plain)(a))
	_, text := samplingTable.Field("text")
	failure, refused := samplingTable.Field("error")
	switch {
	case text && refused:
		b.Errorf(failure, "cannot set both `text` and `error` in one answer")
	case !text && !refused:
		b.Errorf(samplingTable, "an answer needs `text` or `error`")
	}
}
