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
}

func (c *names) Visit(node *ast.Node) {
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
