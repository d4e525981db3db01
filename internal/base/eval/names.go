package eval

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/expr-lang/expr/ast"
)

// nameChecker checks what the type checker does not: internal names, and keys of maps whose keys are known. It also
// collects the names that are used, because the type checker reports only the first unknown one, or none inside
// calls of some functions.
type nameChecker struct {
	env        *Env
	err        error
	used       []*ast.IdentifierNode
	localNames map[string]bool // names that the expression declares
	lastNode   ast.Node        // the node that was visited last: the whole expression
}

func isMember(node ast.Node, name string) bool {
	member, ok := node.(*ast.MemberNode)
	if !ok {
		return false
	}
	property, ok := member.Property.(*ast.StringNode)
	return ok && property.Value == name
}

// memberPath returns the source of an expression that is only a member access, such as `results[0].structured.n`; empty
// for every other expression. It is also empty if the value may be missing: with `?.` or `??`, and for captures of
// match.
func (c *nameChecker) memberPath(src string) string {
	member, ok := c.lastNode.(*ast.MemberNode)
	for ok {
		if member.Optional {
			return ""
		}
		if name, isName := member.Node.(*ast.IdentifierNode); isName && name.Value != "match" { // captures may have no value
			return strings.TrimSpace(src)
		}
		member, ok = member.Node.(*ast.MemberNode)
	}
	return ""
}

func (c *nameChecker) Visit(node *ast.Node) {
	c.lastNode = *node
	if c.err != nil {
		return
	}
	switch n := (*node).(type) {
	case *ast.VariableDeclaratorNode:
		if c.localNames == nil {
			c.localNames = map[string]bool{}
		}
		c.localNames[n.Name] = true
	case *ast.IdentifierNode:
		c.used = append(c.used, n)
		if strings.HasPrefix(n.Value, "__") || n.Value == "$env" {
			c.err = &Error{Message: "unknown name " + n.Value, Offset: n.Location().From, Name: n.Value, Known: c.env.Names()}
		}
	case *ast.MemberNode:
		if isMember(n, "structuredContent") && isMember(n.Node, "structured") { // the former name of the member
			*node = n.Node
			c.lastNode = n.Node
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
