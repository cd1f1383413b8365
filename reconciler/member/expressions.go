package member

import (
	"sync"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/expression"
	"github.com/gitfleet/gitfleet/placement/work"
	"github.com/gitfleet/gitfleet/reconciler/diff"
	"github.com/gitfleet/gitfleet/reconciler/health"
)

// expressions are the availability expressions of objects, each compiled once for all clusters.
type expressions struct {
	mu  sync.Mutex
	all map[string]compiled
}

type compiled struct {
	expression *expression.Expression
	err        error
}

// mostExpressions is how many compiled expressions are cached.
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

// health evaluates an expression on a live object. Its message quotes no Secret.
func (x *expressions) health(live *unstructured.Unstructured, text string) health.Health {
	e, err := x.compile(text)
	if err != nil {
		return health.Unanswered(err)
	}
	h := health.Ask(live, e.Holds)
	secrets := diff.SecretsOf(live)
	h.Message, h.Failure = begin(secrets.Scrub(h.Message)), begin(secrets.Scrub(h.Failure))
	return h
}

// wantedExpressions are the expressions of the objects that a cluster should have. They come
// from the manifests; an expression on a live object is never evaluated, since anybody who may
// edit the object could write it. Watches read them while the session replaces them.
type wantedExpressions struct {
	compiled *expressions
	texts    atomic.Pointer[map[api.ID]string]
}

// of returns the expression of an object; empty if it has none. A nil receiver has
// none.
func (a *wantedExpressions) of(id api.ID) string {
	if a == nil {
		return ""
	}
	if texts := a.texts.Load(); texts != nil {
		return (*texts)[id]
	}
	return ""
}

// replace sets the wanted expressions. An object whose expression has changed is applied next,
// so that its watch reports it.
func (a *wantedExpressions) replace(wanted wants) {
	var texts map[api.ID]string
	for id, w := range wanted.all() {
		if text := expressionOf(w.manifest); text != "" {
			if texts == nil {
				texts = map[api.ID]string{}
			}
			texts[id] = text
		}
	}
	a.texts.Store(&texts)
}

// expressionOf returns the expression of a manifest; empty if it has none.
func expressionOf(m *work.Manifest) string {
	text, _, _ := unstructured.NestedFieldNoCopy(m.Object.Object.Object, "metadata", "annotations", api.AvailableAnnotation)
	s, _ := text.(string)
	return s
}
