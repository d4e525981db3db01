package diag

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// Binder is implemented by pointers to types that have several forms in a file. BindValue calls methods of [BindRun].
type Binder interface {
	BindValue(v Value, b *BindRun)
}

// BindRun is one run of [Bind]. It collects the problems.
type BindRun struct {
	index     *SourceIndex
	list      List
	cache     map[reflect.Type]*structFields
	topFields *structFields // fields of the struct for the whole file; nil means not known yet
}

// Bind decodes a generic tree, as a TOML or JSON parser returns it, into the struct that target points to, and returns
// all problems with their positions. Struct tags select the fields:
//
//	toml:"name"              the key; "-" or no tag: not in the file
//	toml:"name,required"     the key is required
//	enum:"a,b"               the allowed strings
//	min:"0" max:"1"          bounds of a number
//	empty:"no"               the string must not be empty
//
// Fields of embedded structs belong to the outer struct; a struct has at most 64 keys. Keys without a field are
// errors. Targets can be strings, booleans, numbers, pointers, slices, string-keyed maps, structs, any,
// [json.RawMessage] (keys in file order), [Value] and types with [Binder]. A wrong value leaves its field unchanged.
func Bind(tree map[string]any, target any, ix *SourceIndex) List {
	ix.root = newValueFromDecoded(tree, ix.root)
	return ix.BindFileTo(target)
}

// BindFileTo decodes the file from the index; use it only if [SourceIndex.FirstPossibleProblem] returns nil.
func (ix *SourceIndex) BindFileTo(target any) (problems List) {
	b := &BindRun{index: ix, cache: map[reflect.Type]*structFields{}}
	b.BindInto(ix.root, target)
	return b.list
}

// BindInto binds v to the value that target points to, as [Bind] does for fields, and reports whether that succeeded. A
// BindValue method must not pass a target of its receiver's type: BindInto would call the method again.
func (b *BindRun) BindInto(v Value, target any) bool {
	before := len(b.list)
	b.bindValue(v, reflect.ValueOf(target).Elem(), "")
	return len(b.list) == before
}

// BindAllowingOnlyKeys is like BindInto, but allows only the given keys of the target struct. A key that ends in "!" is required.
func (b *BindRun) BindAllowingOnlyKeys(v Value, target any, keys ...string) {
	dst := reflect.ValueOf(target).Elem()
	all, some := b.structFieldsOf(dst.Type()), &structFields{}
	for _, key := range keys {
		name, required := strings.CutSuffix(key, "!")
		f := all.fields[all.indexOfField(name)]
		f.required = f.required || required
		some.fields = append(some.fields, f)
	}
	b.bindFields(v, dst, "", some)
}

// Errorf reports a problem with v.
func (b *BindRun) Errorf(v Value, format string, args ...any) {
	b.reportAtFileOffset(int(v.offset), "", format, args...)
}

// ErrorWithHintf reports a problem with v and a hint about what to do.
func (b *BindRun) ErrorWithHintf(v Value, hint, format string, args ...any) {
	b.reportAtFileOffset(int(v.offset), hint, format, args...)
}

// KeyErrorWithHintf reports a problem with a key.
func (b *BindRun) KeyErrorWithHintf(f TableEntry, hint, format string, args ...any) {
	b.reportAtFileOffset(int(f.offset), hint, format, args...)
}

func (b *BindRun) reportAtFileOffset(fileOffset int, hint, format string, args ...any) {
	d := b.index.diagnosticAt(fileOffset, fmt.Sprintf(format, args...))
	d.Hint = hint
	b.list = append(b.list, d)
}

// bindValue stores v in dst. key is the name of the field in messages; "" means unknown.
func (b *BindRun) bindValue(v Value, dst reflect.Value, key string) {
	if dst.CanAddr() && dst.Kind() != reflect.Pointer {
		switch t := dst.Addr().Interface().(type) {
		case Binder:
			t.BindValue(v, b)
			return
		case *json.RawMessage:
			*t = v.AppendJSON(nil)
			return
		case *Value:
			*t = v
			return
		}
	}
	switch dst.Kind() {
	case reflect.Pointer:
		b.bindPointer(v, dst, key)
	case reflect.Struct:
		b.bindFields(v, dst, key, b.structFieldsOf(dst.Type()))
	case reflect.Slice:
		b.bindSlice(v, dst, key)
	case reflect.Map:
		b.bindMap(v, dst, key)
	case reflect.Interface:
		if x := v.Any(); x != nil {
			dst.Set(reflect.ValueOf(x))
		}
	default:
		b.bindScalar(v, dst, key)
	}
}

func (b *BindRun) bindPointer(v Value, dst reflect.Value, key string) {
	if v.Kind == KindNull {
		return
	}
	p := reflect.New(dst.Type().Elem())
	before := len(b.list)
	b.bindValue(v, p.Elem(), key)
	if len(b.list) == before || v.Kind == KindTable {
		dst.Set(p)
	}
}

func (b *BindRun) bindSlice(v Value, dst reflect.Value, key string) {
	if v.Kind == KindTable && v.table.hasHeader {
		b.reportAtFileOffset(int(v.offset), "write [["+key+"]]: one for each element", "`%s` must be an array, not a table", key)
		return
	}
	if v.Kind != KindArray {
		b.reportWrongType(v, key, "an array")
		return
	}
	items := v.list.items
	s := reflect.MakeSlice(dst.Type(), len(items), len(items))
	for i, item := range items {
		b.bindValue(item, s.Index(i), key)
	}
	dst.Set(s)
}

func (b *BindRun) bindMap(v Value, dst reflect.Value, key string) {
	if v.Kind != KindTable {
		b.reportWrongType(v, key, "a table")
		return
	}
	m := reflect.MakeMapWithSize(dst.Type(), len(v.table.fields))
	for _, f := range v.table.fields {
		e := reflect.New(dst.Type().Elem()).Elem()
		b.bindValue(f.Value, e, f.Key)
		m.SetMapIndex(reflect.ValueOf(f.Key).Convert(dst.Type().Key()), e)
	}
	dst.Set(m)
}

func (b *BindRun) bindFields(v Value, dst reflect.Value, key string, p *structFields) {
	if v.Kind != KindTable {
		b.reportWrongType(v, key, "a table")
		return
	}
	b.topFields = cmp.Or(b.topFields, p)
	var seen uint64
	for i := range v.table.fields {
		f := &v.table.fields[i]
		n := p.indexOfField(f.Key)
		if n < 0 {
			b.reportUnknownKey(f, p)
			continue
		}
		seen |= 1 << n
		b.bindAndCheckField(f.Value, dst.FieldByIndex(p.fields[n].index), &p.fields[n])
	}
	for n := range p.fields {
		if p.fields[n].required && seen&(1<<n) == 0 {
			b.reportAtFileOffset(int(v.offset), "", "missing key `%s`", p.fields[n].name)
		}
	}
}

func (b *BindRun) bindAndCheckField(v Value, dst reflect.Value, f *structField) {
	before := len(b.list)
	b.bindValue(v, dst, f.name)
	if len(b.list) > before {
		return
	}
	if f.enum != nil && v.Kind == KindString {
		b.reportUnlessInEnum(v, f)
	}
	if f.nonEmpty && v.Kind == KindString && v.Text == "" {
		b.reportAtFileOffset(int(v.offset), "", "`%s` must not be empty", f.name)
	}
	if (f.min != nil || f.max != nil) && (v.Kind == KindInt || v.Kind == KindFloat) {
		b.reportUnlessInRange(v, f)
	}
}

func (b *BindRun) reportUnlessInEnum(v Value, f *structField) {
	if slices.Contains(f.enum, v.Text) {
		return
	}
	b.reportAtFileOffset(int(v.offset), DidYouMean(v.Text, f.enum), "`%s` cannot be %q: expected one of %s", f.name, v.Text, strings.Join(f.enum, ", "))
}

func (b *BindRun) reportUnlessInRange(v Value, f *structField) {
	n, err := parseTOMLFloat(v.Text)
	switch {
	case err != nil || math.IsNaN(n):
		b.reportAtFileOffset(int(v.offset), "", "`%s` must be a finite number", f.name)
	case f.min != nil && n < *f.min:
		b.reportAtFileOffset(int(v.offset), "", "`%s` must be at least %s", f.name, formatNumber(*f.min))
	case f.max != nil && n > *f.max:
		b.reportAtFileOffset(int(v.offset), "", "`%s` must be at most %s", f.name, formatNumber(*f.max))
	}
}

func formatNumber(n float64) string { return strconv.FormatFloat(n, 'f', -1, 64) }

func (b *BindRun) reportUnknownKey(f *TableEntry, p *structFields) {
	names := make([]string, len(p.fields))
	for i := range p.fields {
		names[i] = p.fields[i].name
	}
	hint := DidYouMean(f.Key, names)
	if p != b.topFields && b.topFields.indexOfField(f.Key) >= 0 {
		hint = "if it is meant for the whole file, write it above the first [table]"
	}
	for i := range p.fields {
		switch k := &p.fields[i]; {
		case slices.Contains(k.aliases, f.Key):
			hint = "write `" + k.name + "` instead"
		case slices.Contains(k.inside, f.Key):
			hint = fmt.Sprintf("write it inside `%[1]s`: %[1]s = { %s = … }", k.name, f.Key)
		}
	}
	if hint == "" && len(names) > 0 && len(names) <= 12 {
		hint = "known keys here: " + strings.Join(names, ", ")
	}
	b.reportAtFileOffset(int(f.offset), hint, "unknown key `%s`", f.Key)
}

// DidYouMean returns "did you mean `x`?" for the candidate nearest to name; "" if no candidate is similar.
func DidYouMean(name string, candidates []string) string {
	if near := SimilarOtherName(name, candidates); near != "" {
		return "did you mean `" + near + "`?"
	}
	return ""
}

// NameHint returns [DidYouMean]. If no candidate is similar, it returns a list of all candidates, unless there are too
// many. For an empty name it returns "".
func NameHint(name string, candidates []string) string {
	const few = 30
	if hint := DidYouMean(name, candidates); hint != "" || name == "" || len(candidates) == 0 || len(candidates) > few {
		return hint
	}
	return "known names here: " + strings.Join(candidates, ", ")
}

func (b *BindRun) bindScalar(v Value, dst reflect.Value, key string) {
	switch k := dst.Kind(); {
	case k == reflect.String:
		if v.Kind != KindString {
			b.reportWrongType(v, key, "a string")
			return
		}
		dst.SetString(v.Text)
	case k == reflect.Bool:
		if v.Kind != KindBool {
			b.reportWrongType(v, key, "a boolean")
			return
		}
		dst.SetBool(v.Text == "true")
	case dst.CanInt():
		if v.Kind != KindInt {
			b.reportWrongType(v, key, "an integer")
			return
		}
		n, err := parseTOMLInt(v.Text)
		if err != nil || dst.OverflowInt(n) {
			b.reportAtFileOffset(int(v.offset), "", "`%s` is out of range", key)
			return
		}
		dst.SetInt(n)
	case dst.CanFloat():
		n, err := parseTOMLFloat(v.Text)
		if (v.Kind != KindInt && v.Kind != KindFloat) || err != nil {
			b.reportWrongType(v, key, "a number")
			return
		}
		dst.SetFloat(n)
	default:
		panic("diag: cannot bind to " + dst.Type().String())
	}
}

func (b *BindRun) reportWrongType(v Value, key, want string) {
	name := ""
	if key != "" {
		name = "`" + key + "` "
	}
	got := v.Kind.String()
	if v.Kind == KindString && len(v.Text) <= 40 {
		got = "the string " + strconv.Quote(v.Text)
	} else if v.Kind == KindInt {
		got = "the integer " + v.Text
	}
	b.reportAtFileOffset(int(v.offset), "", "%smust be %s, not %s", name, want, got)
}

type structFields struct{ fields []structField }

type structField struct {
	name               string
	index              []int
	required, nonEmpty bool
	enum               []string
	aliases            []string // wrong keys that users often write instead of this key
	inside             []string // keys of this table that users often write next to the table, not inside it
	min, max           *float64
}

func (p *structFields) indexOfField(key string) int {
	for i := range p.fields {
		if p.fields[i].name == key {
			return i
		}
	}
	return -1
}

func (b *BindRun) structFieldsOf(t reflect.Type) *structFields {
	if p, ok := b.cache[t]; ok {
		return p
	}
	p := &structFields{}
	for _, sf := range reflect.VisibleFields(t) {
		name, opts, _ := strings.Cut(sf.Tag.Get("toml"), ",")
		if name == "" || name == "-" {
			continue
		}
		f := structField{name: name, index: sf.Index, required: opts == "required"}
		if e := sf.Tag.Get("enum"); e != "" {
			f.enum = strings.Split(e, ",")
		}
		f.aliases, f.inside = strings.Split(sf.Tag.Get("alias"), ","), strings.Split(sf.Tag.Get("inside"), ",")
		f.nonEmpty = sf.Tag.Get("empty") == "no"
		f.min, f.max = mustParseBound(sf.Tag.Get("min")), mustParseBound(sf.Tag.Get("max"))
		p.fields = append(p.fields, f)
	}
	b.cache[t] = p
	return p
}

func mustParseBound(tag string) *float64 {
	if tag == "" {
		return nil
	}
	f, err := strconv.ParseFloat(tag, 64)
	if err != nil {
		panic("diag: bad bound " + strconv.Quote(tag))
	}
	return &f
}

// SimilarOtherName returns the candidate that is most similar to name; "" means that none is similar. It ignores case and the
// difference between "-" and "_". Of equally similar candidates it returns the first. It never returns name itself.
func SimilarOtherName(name string, candidates []string) string {
	return SimilarOtherNameWithin(name, candidates, max(1, len(name)/3))
}

// SimilarOtherNameWithin is like [SimilarOtherName], but similar names differ by at most maxEdits edits.
func SimilarOtherNameWithin(name string, candidates []string, maxEdits int) string {
	const longest = 64
	if name == "" || len(name) > longest {
		return ""
	}
	best, bestDist := "", 1+maxEdits
	folded := lowerAndReplaceHyphens(name)
	for _, c := range candidates {
		if len(c) > longest {
			continue
		}
		d := EditDistanceInBytes(folded, lowerAndReplaceHyphens(c))
		if d == 0 && c == name {
			continue
		}
		if d < bestDist && d < max(len(name), len(c)) {
			best, bestDist = c, d
		}
	}
	return best
}

func lowerAndReplaceHyphens(name string) string {
	return strings.ReplaceAll(strings.ToLower(name), "-", "_")
}

// EditDistanceInBytes counts insertions, deletions, replacements and swaps of neighbours
// (optimal string alignment) between two short strings.
func EditDistanceInBytes(a, b string) int {
	prev2 := make([]int, len(b)+1)
	prev := make([]int, len(b)+1)
	cur := make([]int, len(b)+1)
	for j := range prev {
		prev[j] = j
	}
	for i := 1; i <= len(a); i++ {
		cur[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			cur[j] = min(prev[j]+1, cur[j-1]+1, prev[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				cur[j] = min(cur[j], prev2[j-2]+1)
			}
		}
		prev2, prev, cur = prev, cur, prev2
	}
	return prev[len(b)]
}
