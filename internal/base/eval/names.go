package eval

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/expr-lang/expr/ast"
)

// names checks what the type checker does not: names that are not for users,
// and keys of maps whose keys are known. It collects the names that are used,
// of which the type checker tells the first only, or none inside the calls of
// some functions.
type names struct {
	env   *Env
	err   error
	used  []*ast.IdentifierNode
	local map[string]bool // what the expression declares
	last  ast.Node        // the node that was visited last: the whole expression
}

// isMember tells whether a node takes a member of that name.
func isMember(node ast.Node, name string) bool {
	member, ok := node.(*ast.MemberNode)
	if !ok {
		return false
	}
	property, ok := member.Property.(*ast.StringNode)
	return ok && property.Value == name
}

// path is the source of an expression that only leads from a name to a member, such as
// `results[0].structured.n`; empty for every other one. A `?.` or `??` says that there
// may be no value.
func (c *names) path(src string) string {
	member, ok := c.last.(*ast.MemberNode)
	for ok {
		if member.Optional {
			return ""
		}
		if name, isName := member.Node.(*ast.IdentifierNode); isName && name.Value != "match" { // captures may well be empty
			return strings.TrimSpace(src)
		}
		member, ok = member.Node.(*ast.MemberNode)
	}
	return ""
}

func (c *names) Visit(node *ast.Node) {
	c.last = *node
	if c.err != nil {
		return
	}
	switch n := (*node).(type) {
	case *ast.VariableDeclaratorNode:
		if c.local == nil {
			c.local = map[string]bool{}
		}
		c.local[n.Name] = true
	case *ast.IdentifierNode:
		c.used = append(c.used, n)
		if strings.HasPrefix(n.Value, "__") || n.Value == "$env" {
			c.err = &Error{Message: "unknown name " + n.Value, Offset: n.Location().From, Name: n.Value, Known: c.env.Names()}
		}
	case *ast.MemberNode:
		if isMember(n, "structuredContent") && isMember(n.Node, "structured") { // as it was written once: both are the same now
			*node = n.Node
			c.last = n.Node
			return
		}
		owner, ok := n.Node.(*ast.IdentifierNode)
		key, isString := n.Property.(*ast.StringNode)
		if !ok || !isString {
			return
		}
		keys, ok := c.env.keys[owner.Value]
		if ok && !slices.Contains(keys, key.Value) {
			c.err = &Error{
				Message: fmt.Sprintf("`%s` has no `%s`", owner.Value, key.Value),
				Offset:  owner.Location().From + utf8.RuneCountInString(owner.Value) + 1,
				Name:    key.Value, Known: keys,
			}
		}
	}
}
