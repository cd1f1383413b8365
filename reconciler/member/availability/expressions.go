// Package availability evaluates the availability expressions of objects.
//
// A Cache compiles each expression once for all clusters. Expressions has the expressions of
// the objects of one cluster.
package availability

import (
	"iter"
	"sync"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/expression"
	"github.com/gitfleet/gitfleet/placement/work"
	"github.com/gitfleet/gitfleet/reconciler/diff"
	"github.com/gitfleet/gitfleet/reconciler/health"
)

// A Cache has the availability expressions of objects, each compiled once for all clusters.
type Cache struct {
	mu  sync.Mutex
	all map[string]compiled
}

type compiled struct {
	expression *expression.Expression
	err        error
}

// maxMessage is the maximum length in bytes of the message of an expression.
const maxMessage = 160

// maxExpressions is the maximum number of cached expressions.
const maxExpressions = 500

func (x *Cache) compile(text string) (*expression.Expression, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	c, known := x.all[text]
	if !known {
		c.expression, c.err = expression.Compile(text)
		if x.all == nil || len(x.all) >= maxExpressions {
			x.all = map[string]compiled{}
		}
		x.all[text] = c
	}
	return c.expression, c.err
}

// Expressions has the expressions of the desired objects of a cluster. They come from the
// manifests. An expression on a live object is never evaluated, since anybody who may edit the
// object could have written it. Watches read Expressions while the session replaces them.
type Expressions struct {
	compiled *Cache
	texts    atomic.Pointer[map[api.ID]string]
}

// New returns the expressions of a cluster without desired objects.
func New(compiled *Cache) *Expressions {
	return &Expressions{compiled: compiled}
}

// Health evaluates an expression on a live object. Its message contains no value of a Secret.
func (a *Expressions) Health(live *unstructured.Unstructured, text string) health.Health {
	var h health.Health
	if e, err := a.compiled.compile(text); err != nil {
		h = health.Unanswered(err)
	} else {
		h = health.Ask(live, e.Holds)
	}
	secrets := diff.SecretsOf(live)
	h.Message, h.Failure = health.Cut(secrets.Scrub(h.Message), maxMessage), health.Cut(secrets.Scrub(h.Failure), maxMessage)
	return h
}

// Of returns the expression of an object; empty if it has none. A nil receiver has
// none.
func (a *Expressions) Of(id api.ID) string {
	if a == nil {
		return ""
	}
	if texts := a.texts.Load(); texts != nil {
		return (*texts)[id]
	}
	return ""
}

// Replace replaces the expressions by those of these manifests. If the expression of an object
// has changed, the object is applied next, so that its watch reports it.
func (a *Expressions) Replace(manifests iter.Seq[*work.Manifest]) {
	var texts map[api.ID]string
	for m := range manifests {
		if text := Of(m); text != "" {
			if texts == nil {
				texts = map[api.ID]string{}
			}
			texts[m.ID] = text
		}
	}
	a.texts.Store(&texts)
}

// Of returns the expression of a manifest; empty if it has none.
func Of(m *work.Manifest) string {
	text, _, _ := unstructured.NestedFieldNoCopy(m.Object.Content.Object, "metadata", "annotations", api.AvailableAnnotation)
	s, _ := text.(string)
	return s
}

// NeedsStatus reports whether the availability of an object depends on more than its metadata.
func NeedsStatus(m *work.Manifest) bool {
	return health.NeedsStatus(m.Object.Content.GroupVersionKind()) || Of(m) != ""
}
