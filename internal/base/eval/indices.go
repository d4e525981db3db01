package eval

import (
	"unicode/utf8"

	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/parser"
)

// ListIndex is a list element that an expression accesses by number.
type ListIndex struct {
	Name          string // name of the list
	Value         int    // index from 0; negative means from the end
	Offset        int    // position of the name, in characters from the beginning of the source
	Unconditional bool   // every evaluation reads this element, not only one branch of ?:, && or ||
}

// ListIndicesInTemplate returns the list elements that a template accesses. An expression that does not compile has none.
func ListIndicesInTemplate(template string) (all []ListIndex) {
	for start, end := nextExpression(template, 0); end >= 0; start, end = nextExpression(template, end+2) {
		for _, index := range ListIndicesInExpression(template[start:end]) {
			index.Offset += utf8.RuneCountInString(template[:start])
			all = append(all, index)
		}
	}
	return all
}

// ListIndicesInExpression is like [ListIndicesInTemplate] but for a single expression.
func ListIndicesInExpression(expression string) []ListIndex {
	if len(expression) > maxExpressionBytes {
		return nil
	}
	tree, err := parser.Parse(expression)
	if err != nil {
		return nil
	}
	found := &listIndexCollector{conditionallyEvaluatedNodes: map[ast.Node]bool{}}
	ast.Walk(&tree.Node, found)
	all := make([]ListIndex, 0, len(found.indexedElements))
	for _, m := range found.indexedElements {
		all = append(all, ListIndex{Name: m.list.Value, Value: valueOfIntegerLiteral(m.node.Property), Offset: m.list.Location().From, Unconditional: !found.conditionallyEvaluatedNodes[m.node]})
	}
	return all
}

func valueOfIntegerLiteral(literalNode ast.Node) int {
	switch n := literalNode.(type) {
	case *ast.IntegerNode:
		return n.Value
	case *ast.UnaryNode:
		return -valueOfIntegerLiteral(n.Node)
	}
	return 0
}

// listIndexCollector collects the list elements that an expression accesses by number.
// conditionallyEvaluatedNodes contains the nodes that an evaluation may skip.
type listIndexCollector struct {
	indexedElements             []listElementAccess
	conditionallyEvaluatedNodes map[ast.Node]bool
}

// listElementAccess is an access to an element of a list variable, such as results[0].
type listElementAccess struct {
	node *ast.MemberNode
	list *ast.IdentifierNode
}

// Visit implements ast.Visitor; children come before their parents.
func (v *listIndexCollector) Visit(node *ast.Node) {
	switch n := (*node).(type) {
	case *ast.MemberNode:
		if list, ok := n.Node.(*ast.IdentifierNode); ok && isIntegerLiteral(n.Property) {
			v.indexedElements = append(v.indexedElements, listElementAccess{n, list})
		}
		if n.Optional {
			v.markSubtreeAsConditionallyEvaluated(n)
		}
	case *ast.ConditionalNode, *ast.PredicateNode, *ast.ChainNode:
		v.markSubtreeAsConditionallyEvaluated(n)
	case *ast.BinaryNode:
		switch n.Operator {
		case "??", "and", "&&", "or", "||":
			v.markSubtreeAsConditionallyEvaluated(n)
		}
	}
}

func isIntegerLiteral(n ast.Node) bool {
	if u, ok := n.(*ast.UnaryNode); ok && u.Operator == "-" {
		n = u.Node
	}
	_, ok := n.(*ast.IntegerNode)
	return ok
}

func (v *listIndexCollector) markSubtreeAsConditionallyEvaluated(subtreeRoot ast.Node) {
	ast.Walk(&subtreeRoot, conditionallyEvaluatedNodeMarker{v})
}

type conditionallyEvaluatedNodeMarker struct{ *listIndexCollector }

func (d conditionallyEvaluatedNodeMarker) Visit(node *ast.Node) {
	d.conditionallyEvaluatedNodes[*node] = true
}
