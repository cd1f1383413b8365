package member

import (
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/gitfleet/gitfleet/placement/expression"
	"github.com/gitfleet/gitfleet/reconciler/diff"
	"github.com/gitfleet/gitfleet/reconciler/health"
)

// expressions are those by which objects say whether they are available, each
// compiled once for all clusters.
type expressions struct {
	mu  sync.Mutex
	all map[string]compiled
}

type compiled struct {
	expression *expression.Expression
	err        error
}

// mostExpressions bounds what is kept: people on members may write any number of
// them.
const mostExpressions = 500

func (x *expressions) compile(text string) (*expression.Expression, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	c, known := x.all[text]
	if !known {
		c.expression, c.err = expression.Compile(text)
		if x.all == nil || len(x.all) >= mostExpressions {
			x.all = map[string]compiled{}
		}
		x.all[text] = c
	}
	return c.expression, c.err
}

// health tells by an expression whether a live object is available. What it says
// quotes no Secret.
func (x *expressions) health(live *unstructured.Unstructured, text string) health.Health {
	e, err := x.compile(text)
	if err != nil {
		return health.Unanswered(err)
	}
	h := health.Ask(live, e.Holds)
	h.Message = begin(diff.SecretsOf(live).Scrub(h.Message))
	return h
}
