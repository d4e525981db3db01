package eval

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

type result struct {
	Text    string `expr:"text"`
	IsError bool   `expr:"is_error"`
	Value   any    `expr:"value"`
}

var (
	testNames = map[string]any{
		"prompt": "", "n": 0, "list": []any{}, "results": []result{}, "match": map[any]any{}, "x": nil, "tools": []string{},
		"session": ExampleObject{"id": "", "turn": 0},
	}
	testVars = map[string]any{
		"prompt": "hello", "n": 3, "list": longList(300), "tools": []string{"a", "b"},
		"results": []result{{Text: "sunny", Value: map[string]any{"b": []any{int64(1), "x"}, "a": nil}}},
		"match":   map[any]any{0: "all", "city": "Oslo"}, "x": map[string]any{"k": "v"},
		"session": map[string]any{"id": "S", "turn": 2},
	}
)

func longList(n int) []any {
	l := make([]any, n)
	for i := range l {
		l[i] = i
	}
	return l
}

func TestRun(t *testing.T) {
	env := NewEnv(testNames).WithMapKeys("match", []string{"city"})
	for src, want := range map[string]any{
		`prompt == "hello"`:                        true,
		`n + 1`:                                    4,
		`prompt + " " + match.city`:                "hello Oslo",
		`match[0]`:                                 "all",
		`results[0].text`:                          "sunny",
		`"a" in tools`:                             true,
		`session.id + string(session.turn)`:        "S2",
		`x.k == "v"`:                               true,
		`len(filter(list, # > 297))`:               2,
		`sum(map(1..10, # * 2))`:                   110,
		`reduce(1..4, #acc + #)`:                   10,
		`toJSON(results[0].value)`:                 `{"a":null,"b":[1,"x"]}`,
		`string(3) + join(tools, "-")`:             "3a-b",
		`replace(prompt, "l", "L")`:                "heLLo",
		`repeat("ab", 2)`:                          "abab",
		`all(results, !.is_error) && n in [1,2,3]`: true,
		`x.missing ?? "none"`:                      "none",
		`[n, prompt] == [3, "hello"]`:              true,
		`upper(prompt)[0:2]`:                       "HE",
		`sort([3,1,2])`:                            []any{1, 2, 3},
	} {
		t.Run(src, func(t *testing.T) {
			p, err := Compile(src, env)
			if err != nil {
				t.Fatal(err)
			}
			got, err := p.Run(t.Context(), testVars)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestCompileErrors(t *testing.T) {
	env := NewEnv(testNames).WithMapKeys("match", []string{"city"})
	callable := existingFunctionOrVariableNames("f()", 0, "f", env)
	for src, want := range map[string]Error{
		`n > promt`:             {Message: "unknown name promt", Offset: 4, Name: "promt", Known: env.VariableNames()},
		`match.town == "x"`:     {Message: "`match` has no `town`", Offset: 6, Name: "town", Known: []string{"city"}},
		`__budget`:              {Message: "unknown name __budget", Name: "__budget", Known: env.VariableNames()},
		`$env`:                  {Message: "unknown name $env", Name: "$env", Known: env.VariableNames()},
		`now()`:                 {Message: "unknown name now", Name: "now", Known: callable},
		`uper(prompt)`:          {Message: "unknown name uper", Name: "uper", Known: callable},
		`prompt = "x"`:          {Message: `unexpected token Operator("=")`, Offset: 7, Hint: "write `==` to compare"},
		`prompt === "x"`:        {Message: `unexpected token Operator("=")`, Offset: 9, Hint: "write `==` to compare"},
		`prompt =~ "x"`:         {Message: `unexpected token Operator("=")`, Offset: 7, Hint: "write `x matches \"…\"` to match a regular expression"},
		`prompt.contains("x")`:  {Message: "type string has no method contains", Offset: 7, Hint: "write it between its operands: `x contains \"…\"`"},
		`prompt.upper()`:        {Message: "type string has no method upper", Offset: 7, Hint: "write it as a function: `upper(x)`"},
		`contains(prompt, "x")`: {Message: `unexpected token Operator("contains")`, Hint: "write it between its operands: `x contains \"…\"`"},
		`"x" in prompt`:         {Message: "invalid operation: in (mismatched types string and string)", Offset: 4, Hint: "write `x contains \"…\"` to test whether a text contains another one"},
		`results[0].txt`:        {Message: "unknown field txt", Offset: 11, Name: "txt", Known: env.fields},
		`session.name`:          {Message: "unknown field name", Offset: 8, Name: "name", Known: env.fields},
		`prompt.text`:           {Message: "a text has no field text", Offset: 7, Name: "text", Hint: "write it without `.text`"},
		`  `:                    {Message: "the expression is empty"},
		`n + "x"`:               {Message: "invalid operation: + (mismatched types int and string)", Offset: 2},
		`n ==`:                  {Message: "unexpected token EOF", Offset: 3},
	} {
		t.Run(src, func(t *testing.T) {
			_, err := Compile(src, env)
			e, ok := errors.AsType[*Error](err)
			if !ok {
				t.Fatalf("error is %v", err)
			}
			if diff := cmp.Diff(want, *e); diff != "" {
				t.Error(diff)
			}
		})
	}
	if _, err := CompileBool(`n + 1`, env); err == nil {
		t.Error("a number passes as a condition")
	}
}

// The names that a message proposes are in the same order each time, although they come from maps (C5).
func TestCandidatesOrder(t *testing.T) {
	fields, objects := ExampleObject{}, map[string]any{}
	for i := range 30 {
		fields[fmt.Sprintf("field%02d", i)] = ""
		objects[fmt.Sprintf("object%02d", i)] = ExampleObject{fmt.Sprintf("field%02d", i): ""}
	}
	for range 5 {
		env := NewEnv(testNames).WithMapKeys("match", []string{"city"})
		for _, list := range [][]string{env.VariableNames(), NewEnv(objects).fields, existingFunctionOrVariableNames("f()", 0, "f", env), existingFunctionOrVariableNames("f", 0, "f", env), exampleFieldNames(fields)} {
			if len(list) < 3 || !slices.IsSorted(list) {
				t.Fatalf("not in order: %v", list)
			}
		}
	}
}

// All mistakes of a template and all unknown names of an expression are reported.
func TestAllFaults(t *testing.T) {
	_, err := ParseTemplate("é {{ nope + also(n) + n }} {{ n }} {{ 1 + }} {{ let a = 1; a + b }} {{ filter(tools, # == c) + d }} {{", NewEnv(testNames))
	var got []string
	for _, e := range CompileErrorsIn(err) {
		got = append(got, fmt.Sprintf("%d %s", e.Offset, e.Message))
	}
	want := []string{"5 unknown name nope", "12 unknown name also", "41 unexpected token EOF", "63 unknown name b", "90 unknown name c", "95 unknown name d", "100 `{{` needs a closing `}}`"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// An integer overflow is an error.
func TestOverflow(t *testing.T) {
	env := NewEnv(testNames)
	for src, want := range map[string]string{
		`9223372036854775807 + 1`:        "integer overflow in 9223372036854775807 + 1",
		`n + 9223372036854775807`:        "integer overflow in 3 + 9223372036854775807",
		`-9223372036854775807 - n`:       "integer overflow in -9223372036854775807 - 3",
		`4611686018427387904 * 2`:        "integer overflow in 4611686018427387904 * 2",
		`reduce(1..70, #acc * 2, 1)`:     "integer overflow in 4611686018427387904 * 2",
		`list[1] + 9223372036854775807`:  "integer overflow in 1 + 9223372036854775807",
		`9223372036854775806 + 1`:        "9223372036854775807",
		`-9223372036854775807 - 1`:       "-9223372036854775808",
		`n * -3 + list[2] * 2 - list[1]`: "-6",
		`list[1] + 0.5`:                  "1.5",
		`x.k + "w"`:                      "vw",
		`x.k + n`:                        `invalid operation: string + int`,
	} {
		p, err := Compile(src, env)
		if err != nil {
			t.Errorf("%s: %v", src, err)
			continue
		}
		v, err := p.Run(t.Context(), testVars)
		got := fmt.Sprint(v)
		if err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%s: got %s, want %s", src, got, want)
		}
	}
}

// The output of templates is bounded per text and, on request, in total.
func TestTemplateTotal(t *testing.T) {
	env := NewEnv(testNames)
	parse := func(n int) *Template {
		tpl, err := ParseTemplate(strings.Repeat(`{{ repeat("a", 900000) }}`, n), env)
		if err != nil {
			t.Fatal(err)
		}
		return tpl
	}
	long, short := parse(2000), parse(8)
	if _, err := long.Text(t.Context(), testVars); !errors.Is(err, errTemplateTooLong) {
		t.Errorf("a long text: %v", err)
	}
	ctx := WithOutputLimitAndMissingPaths(t.Context())
	var err error
	texts := 0
	for ; err == nil && texts < 100; texts++ {
		_, err = short.Text(ctx, testVars)
	}
	if !errors.Is(err, errAllTemplatesTooLong) || texts < 9 {
		t.Errorf("%d texts: %v", texts, err)
	}
	if _, err := short.Text(t.Context(), testVars); err != nil {
		t.Error(err)
	}
}

// Four nested closures over 300 elements are refused or stopped (surfaces, debugger). Evaluation is limited in time and
// memory (scenario-format 4).
func TestBounds(t *testing.T) {
	env := NewEnv(testNames)
	for name, src := range map[string]string{
		"nested closures": `sum(list, sum(list, sum(list, sum(list, #))))`,
		"any of nested":   `any(list, any(list, any(list, any(list, false))))`,
		"string doubling": `reduce(1..60, #acc + #acc, "aaaaaaaaaaaaaaaa")`,
		"list doubling":   `reduce(1..60, [#acc, #acc], 1)`,
		"written out":     `toJSON(reduce(1..60, [#acc, #acc], 1))`,
		"let chain":       `let a=[1,1]; let b=[a,a,a,a,a,a,a,a]; let c=[b,b,b,b,b,b,b,b]; let d=[c,c,c,c,c,c,c,c]; let e=[d,d,d,d,d,d,d,d]; let f=[e,e,e,e,e,e,e,e]; let g=[f,f,f,f,f,f,f,f]; let h=[g,g,g,g,g,g,g,g]; h == [h]`,
		"repeat":          `repeat("aaaa", 1000000000)`,
		"replace":         `replace(repeat("a", 1000000), "", repeat("a", 1000000))`,
		"many strings":    `map(1..100000, repeat("a", 100000))`,
		"many copies":     `map(1..100000, upper(repeat("a", 1000)) + "x")`,
		"join":            `join(map(1..100000, repeat("a", 100)), "-")`,
		"range":           `1..2000000000`,
		"any plus":        `reduce(1..60, x == nil ? #acc + #acc : #acc + #acc, x.k)`,
	} {
		t.Run(name, func(t *testing.T) {
			p, err := Compile(src, env)
			if err != nil {
				return
			}
			if v, err := p.Run(t.Context(), testVars); err == nil {
				t.Errorf("ended with %.80v", v)
			}
		})
	}
}

func TestTemplate(t *testing.T) {
	env := NewEnv(testNames)
	for src, want := range map[string]any{
		`plain`:                          "plain",
		``:                               "",
		`{{ n }}`:                        3,
		`{{n}} `:                         "3 ",
		`{{ results[0].value }}`:         map[string]any{"b": []any{int64(1), "x"}, "a": nil},
		`v: {{ results[0].value }}`:      `v: {"a":null,"b":[1,"x"]}`,
		`{{ {"a": {"b": n}} }}`:          map[string]any{"a": map[string]any{"b": 3}},
		`{{ "}}" }} and {{ '{{' }}`:      "}} and {{",
		`a {{ x.missing }} b`:            "a  b",
		`{{ prompt }}{{ match["city"]}}`: "helloOslo",
	} {
		t.Run(src, func(t *testing.T) {
			tpl, err := ParseTemplate(src, env)
			if err != nil {
				t.Fatal(err)
			}
			got, err := tpl.Eval(t.Context(), testVars)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
	for src, offset := range map[string]int{"é {{ n": 2, "é {{ n }} {{ nn }}": 13} {
		_, err := ParseTemplate(src, env)
		if e, ok := errors.AsType[*Error](err); !ok || e.Offset != offset {
			t.Errorf("%q: %#v", src, err)
		}
	}
}

func FuzzTemplate(f *testing.F) {
	for _, s := range []string{"a {{ n }}", "{{", "{{ '", "{{ {} }}", "{{ list | map(# + 1) }}", "{{ reduce(list, #acc + #) }}"} {
		f.Add(s)
	}
	env := NewEnv(testNames)
	f.Fuzz(func(t *testing.T, src string) {
		tpl, err := ParseTemplate(src, env)
		if err == nil {
			_, _ = tpl.Eval(t.Context(), testVars)
		}
	})
}
