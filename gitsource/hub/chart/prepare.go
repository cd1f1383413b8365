package chart

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"text/template/parse"
)

// The names of functions that prepared templates call, which no text of a chart needs.
const (
	stepName    = "gitfleet_step"
	outputName  = "gitfleet_output"
	methodName  = "gitfleet_method"
	callName    = "gitfleet_call"
	compareName = "gitfleet_compare"
	patternName = "gitfleet_pattern"
)

// nodesPerStep is how many nodes of a template are executed for a step.
const nodesPerStep = 16

// deepestNesting limits how deeply actions are nested in each other, and parentheses in an action.
const deepestNesting = 200

var nesting = regexp.MustCompile(`\{\{(?:-?\s*(if|with|range|block|define|else\s+if|else\s+with|end)\b)?|[()]`)

// checkNesting refuses a text that is nested so deeply that parsing or executing it could exhaust the stack.
func checkNesting(name, text string) error {
	// open are the blocks that are open, each with the number of its levels, and parentheses those of the action.
	var open []int
	depth, parentheses := 0, 0
	for _, at := range nesting.FindAllStringSubmatchIndex(text, -1) {
		word := text[at[0]:at[1]]
		if word[0] == '{' {
			word, parentheses = "", 0
		}
		if at[2] >= 0 {
			word = text[at[2]:at[3]]
		}
		switch {
		case word == "":
		case word == "(":
			parentheses++
		case word == ")":
			parentheses = max(parentheses-1, 0)
		case word == "end" && len(open) > 0:
			depth -= open[len(open)-1]
			open = open[:len(open)-1]
		case strings.HasPrefix(word, "else") && len(open) > 0:
			open[len(open)-1]++
			depth++
		case word != "end":
			open = append(open, 1)
			depth++
		}
		if depth > deepestNesting || parentheses > deepestNesting {
			line := strings.Count(text[:at[0]], "\n") + 1
			return &executionError{name, fmt.Errorf("template: %s:%d: the template is nested deeper than %d levels", name, line, deepestNesting)}
		}
	}
	return nil
}

// prepare changes a parsed template, so that whatever can take long or write much is counted: each iteration of a loop is
// a step, and more if its body is large; each value is read before it is written or compared, and templates are called by a
// function.
func prepare(tree *parse.Tree) {
	if tree.Root == nil {
		return
	}
	steps := nodesOf(tree.Root) / nodesPerStep
	prepareList(tree.Root)
	if steps > 0 { // the call of the template is a step itself
		insertStep(tree.Root, tree.Root.Pos, 1, steps)
	}
}

func insertStep(list *parse.ListNode, pos parse.Pos, line, steps int) {
	c := call(stepName, pos)
	c.Args = append(c.Args, &parse.NumberNode{NodeType: parse.NodeNumber, Pos: pos, IsInt: true, Int64: int64(steps), Text: strconv.Itoa(steps)})
	step := &parse.ActionNode{NodeType: parse.NodeAction, Pos: pos, Line: line, Pipe: pipe(pos, line, c)}
	list.Nodes = append([]parse.Node{step}, list.Nodes...)
}

// nodesOf counts the nodes that are executed at most if a list is, without the bodies of loops in it.
func nodesOf(list *parse.ListNode) int {
	if list == nil {
		return 0
	}
	n := len(list.Nodes)
	for _, node := range list.Nodes {
		switch node := node.(type) {
		case *parse.ActionNode:
			n += nodesOfPipe(node.Pipe)
		case *parse.TemplateNode:
			n += nodesOfPipe(node.Pipe)
		case *parse.IfNode:
			n += nodesOfPipe(node.Pipe) + nodesOf(node.List) + nodesOf(node.ElseList)
		case *parse.WithNode:
			n += nodesOfPipe(node.Pipe) + nodesOf(node.List) + nodesOf(node.ElseList)
		case *parse.RangeNode:
			n += nodesOfPipe(node.Pipe) + nodesOf(node.ElseList)
		}
	}
	return n
}

func nodesOfPipe(p *parse.PipeNode) int {
	if p == nil {
		return 0
	}
	n := len(p.Cmds)
	for _, c := range p.Cmds {
		for _, arg := range c.Args {
			n++
			n += len(identsOf(arg))
			if chain, is := arg.(*parse.ChainNode); is {
				arg = chain.Node
			}
			if inner, is := arg.(*parse.PipeNode); is {
				n += nodesOfPipe(inner)
			}
		}
	}
	return n
}

func prepareList(list *parse.ListNode) {
	if list == nil {
		return
	}
	for i, node := range list.Nodes {
		switch n := node.(type) {
		case *parse.ActionNode:
			preparePipe(n.Pipe)
			if len(n.Pipe.Decl) == 0 {
				n.Pipe.Cmds = append(n.Pipe.Cmds, call(outputName, n.Pos))
			}
		case *parse.TemplateNode:
			list.Nodes[i] = callTemplate(n)
		case *parse.IfNode:
			prepareBranch(&n.BranchNode)
		case *parse.WithNode:
			prepareBranch(&n.BranchNode)
		case *parse.RangeNode:
			steps := 1 + nodesOf(n.List)/nodesPerStep
			prepareBranch(&n.BranchNode)
			if n.List != nil {
				insertStep(n.List, n.Pos, n.Line, steps)
			}
		}
	}
}

func prepareBranch(n *parse.BranchNode) {
	preparePipe(n.Pipe)
	prepareList(n.List)
	prepareList(n.ElseList)
}

// methods are those of Files that make new values.
var methods = []string{"Glob", "AsConfig", "AsSecrets", "Lines"}

// comparing are the functions of Go that read the texts that they compare.
var comparing = []string{"eq", "ne", "lt", "le", "gt", "ge"}

// preparePipe adds a call after each method that makes a value, and before each comparison.
func preparePipe(p *parse.PipeNode) {
	if p == nil {
		return
	}
	for i := 0; i < len(p.Cmds); i++ {
		c := p.Cmds[i]
		for j, arg := range c.Args {
			if inner, is := arg.(*parse.PipeNode); is {
				preparePipe(inner)
			}
			if chain, is := arg.(*parse.ChainNode); is {
				if inner, is := chain.Node.(*parse.PipeNode); is {
					preparePipe(inner)
				}
			}
			if j > 0 && isMethod(arg) {
				c.Args[j] = pipe(arg.Position(), p.Line, &parse.CommandNode{NodeType: parse.NodeCommand, Pos: arg.Position(), Args: []parse.Node{arg}}, call(methodName, arg.Position()))
			}
		}
		if len(c.Args) > 0 && isMethod(c.Args[0]) {
			p.Cmds = slices.Insert(p.Cmds, i+1, call(methodName, c.Pos))
			i++
		}
	}
	for i := 0; i < len(p.Cmds); i++ {
		c := p.Cmds[i]
		before := argumentFunction(c)
		if before == "" {
			continue
		}
		for j, arg := range c.Args[1:] {
			if arg.Type() == parse.NodeNil {
				continue
			}
			c.Args[j+1] = pipe(arg.Position(), p.Line, &parse.CommandNode{NodeType: parse.NodeCommand, Pos: arg.Position(), Args: []parse.Node{arg}}, call(before, arg.Position()))
		}
		if i > 0 { // the result of the command before is an argument too
			p.Cmds = slices.Insert(p.Cmds, i, call(before, c.Pos))
			i++
		}
	}
}

// argumentFunction returns the function that each argument of a command goes through; empty for none.
func argumentFunction(c *parse.CommandNode) string {
	if function, is := c.Args[0].(*parse.IdentifierNode); is && slices.Contains(comparing, function.Ident) {
		return compareName
	}
	if names := identsOf(c.Args[0]); len(names) > 0 && names[len(names)-1] == "Glob" {
		return patternName
	}
	return ""
}

func isMethod(n parse.Node) bool {
	idents := identsOf(n)
	return len(idents) > 0 && slices.Contains(methods, idents[len(idents)-1])
}

// identsOf are the fields and methods that a node names.
func identsOf(n parse.Node) []string {
	switch n := n.(type) {
	case *parse.FieldNode:
		return n.Ident
	case *parse.VariableNode:
		return n.Ident[1:]
	case *parse.ChainNode:
		return n.Field
	}
	return nil
}

// callTemplate returns an action that calls a template as {{ template }} does.
func callTemplate(n *parse.TemplateNode) *parse.ActionNode {
	var data parse.Node = &parse.NilNode{NodeType: parse.NodeNil, Pos: n.Pos}
	if n.Pipe != nil {
		preparePipe(n.Pipe)
		data = n.Pipe
	}
	c := call(callName, n.Pos)
	c.Args = append(c.Args, &parse.StringNode{NodeType: parse.NodeString, Pos: n.Pos, Quoted: fmt.Sprintf("%q", n.Name), Text: n.Name}, data)
	return &parse.ActionNode{NodeType: parse.NodeAction, Pos: n.Pos, Line: n.Line, Pipe: pipe(n.Pos, n.Line, c)}
}

func call(function string, pos parse.Pos) *parse.CommandNode {
	return &parse.CommandNode{NodeType: parse.NodeCommand, Pos: pos, Args: []parse.Node{parse.NewIdentifier(function).SetPos(pos)}}
}

func pipe(pos parse.Pos, line int, cmds ...*parse.CommandNode) *parse.PipeNode {
	return &parse.PipeNode{NodeType: parse.NodePipe, Pos: pos, Line: line, Cmds: cmds}
}

// An executionError is an error of a template.
type executionError struct {
	template string
	err      error
}
