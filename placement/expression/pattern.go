package expression

import (
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/interpreter"
)

const (
	// Costliest is the maximum cost of one evaluation in CEL's units: one for each step, and one
	// for each ten bytes that are read or made.
	Costliest = 100_000
	// LargestPattern is the maximum number of states of a regular expression.
	LargestPattern = 2_000
	// maxLoops limits the macros that iterate over a list, and maxLiterals the lists and maps,
	// including those made by macros. Checking an expression with hundreds of nested ones takes
	// very long.
	maxLoops    = 16
	maxLiterals = 64
)

// statesPerUnit is the number of states of a pattern that cost one unit for each character.
const statesPerUnit = 100

// inspect refuses expressions that would be expensive to compile or to evaluate, and returns the
// number of states of each regular expression.
func inspect(tree *cel.Ast) (map[string]int, error) {
	states, loops, literals := map[string]int{}, 0, 0
	var err error
	ast.PostOrderVisit(tree.NativeRep().Expr(), ast.NewExprVisitor(func(e ast.Expr) {
		fail := func(at ast.Expr, format string, args ...any) {
			if err == nil {
				err = located(tree.NativeRep().SourceInfo().GetStartLocation(at.ID()), fmt.Sprintf(format, args...))
			}
		}
		if e.Kind() == ast.ListKind || e.Kind() == ast.MapKind {
			if literals++; literals > maxLiterals {
				fail(e, "it has more than %d lists and maps, those that macros make included", maxLiterals)
			}
		}
		switch e.Kind() {
		case ast.ComprehensionKind:
			if loops++; loops > maxLoops {
				fail(e, "it has more than %d loops, such as map or all", maxLoops)
			}
		case ast.MapKind:
			for _, entry := range e.AsMap().Entries() {
				// Types of keys and values would double the type of the map each time.
				if key := entry.AsMapEntry().Key(); key.Kind() != ast.LiteralKind {
					fail(key, "the key of a map must be a constant")
				}
			}
		case ast.CallKind:
			if e.AsCall().FunctionName() != "matches" {
				return
			}
			args := e.AsCall().Args()
			if len(args) == 0 {
				return // not a call of the built-in function
			}
			pattern := args[len(args)-1]
			if pattern.Kind() != ast.LiteralKind {
				fail(pattern, "the pattern of matches must be written out in quotes")
				return
			}
			var invalid error
			if states[text(pattern.AsLiteral())], invalid = statesIn(text(pattern.AsLiteral())); invalid != nil {
				fail(pattern, "%v", invalid)
			}
		}
	}))
	return states, err
}

// statesIn returns the approximate number of states of a compiled pattern.
func statesIn(pattern string) (int, error) {
	parsed, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return 0, err
	}
	n := statesOf(parsed)
	if n > LargestPattern {
		return 0, fmt.Errorf("the pattern has more than %d states; repeat less in it", LargestPattern)
	}
	return n, nil
}

func statesOf(p *syntax.Regexp) int {
	n := 1
	if p.Op == syntax.OpLiteral {
		n = len(p.Rune)
	}
	for _, sub := range p.Sub {
		n = min(n+statesOf(sub), LargestPattern+1)
	}
	if p.Op == syntax.OpRepeat {
		n *= max(p.Min+1, p.Max)
	}
	return min(n, LargestPattern+1)
}

func matchCost(s ref.Val, states int) uint64 {
	return uint64(len(text(s))+1) * uint64(states+1) / statesPerUnit
}

// matching compiles each pattern once, and refuses expensive matches before they run. Other
// calls are cheap enough to be charged afterwards.
func matching(states map[string]int) *interpreter.RegexOptimization {
	return &interpreter.RegexOptimization{
		Function: "matches", RegexIndex: 1,
		Factory: func(call interpreter.InterpretableCall, pattern string) (interpreter.InterpretableCall, error) {
			compiled, err := regexp.Compile(pattern)
			if err != nil {
				return nil, err
			}
			return interpreter.NewCall(call.ID(), call.Function(), call.OverloadID(), call.Args(), func(values ...ref.Val) ref.Val {
				if len(values) != 2 {
					return types.NoSuchOverloadErr()
				}
				s, ok := values[0].(types.String)
				if !ok {
					return types.MaybeNoSuchOverloadErr(values[0])
				}
				if matchCost(s, states[pattern]) > Costliest {
					return types.NewErr("the text is too long for the pattern of matches")
				}
				return types.Bool(compiled.MatchString(string(s)))
			}), nil
		},
	}
}

func located(at interface {
	Line() int
	Column() int
}, message string) error {
	if at.Line() < 1 {
		return errors.New(message)
	}
	return fmt.Errorf("line %d, column %d: %s", at.Line(), at.Column()+1, message)
}

func text(v ref.Val) string {
	s, _ := v.(types.String)
	return string(s)
}
