package member

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/diff"
	"github.com/gitfleet/gitfleet/reconciler/health"
	"github.com/gitfleet/gitfleet/reconciler/member/connection"
	"github.com/gitfleet/gitfleet/reconciler/member/retry"
)

// Only the pods of a workload know why it stays unavailable. They are read once it has been
// unavailable for some time, and then with backoff: what they say may alternate by itself, as
// between a failing image pull and the wait for the next.
const (
	stuckAfter  = 10 * time.Second
	askAgain    = 40 * time.Second // with jitter at least 30
	askSeldom   = 10 * time.Minute
	askTogether = 4 // workloads of one cluster, and no more within stuckAfter
	podsRead    = 20
)

// stuck are the workloads of a session that are not available; nil while all are.
type stuck struct {
	of     map[api.ID]*hindrance
	timer  *time.Timer // wakes the session
	asking bool
	// replies are the answers about pods until they are recorded; nil if there are none.
	replies atomic.Pointer[map[api.ID]reply]
	rests   time.Time // no pods are read before
	// refused says that pods may not be read here, and that this was logged.
	refused bool
}

type hindrance struct {
	generation int64
	asked      time.Time     // when its pods were last read
	next       time.Time     // when they are next read
	times      retry.Backoff // how often they were read
	why        string
	// notStarting is since when the pods are known not to start; zero if they do. failed says
	// that this has lasted for PodFailureTimeout.
	notStarting time.Time
	failed      bool
	// well says that it is available again; the entry is kept so that it is not read too often.
	well bool
}

// workloads are the kinds that create pods.
var workloads = map[schema.GroupKind]bool{
	{Group: "apps", Kind: "Deployment"}: true, {Group: "apps", Kind: "StatefulSet"}: true,
	{Group: "apps", Kind: "DaemonSet"}: true, {Group: "batch", Kind: "Job"}: true,
}

// hindered returns what the pods of an unavailable workload say, empty while that is unknown,
// and whether they have failed to start for too long.
func (s *session) hindered(id api.ID, h health.Health, generation int64) (why string, failed bool) {
	if h.Counts() || h.Unseen() || !workloads[id.GroupKind()] {
		s.unstuck(id)
		return "", false
	}
	if s.stuck == nil {
		s.stuck = &stuck{of: map[api.ID]*hindrance{}, timer: time.AfterFunc(s.askAfter(), s.watch.Changes.Nudge)}
	}
	known := s.stuck.of[id]
	if known == nil || known.well || known.generation != generation {
		anew := &hindrance{generation: generation, next: time.Now().Add(s.askAfter())}
		if known != nil && !known.asked.IsZero() {
			anew.asked, anew.next = known.asked, retry.Later(anew.next, known.asked.Add(askAgain))
		}
		known = anew
		s.stuck.of[id] = known
		s.stuck.wake()
	}
	return known.why, known.failed
}

// askAfter is how long a workload is unavailable before its pods are read.
func (s *session) askAfter() time.Duration { return min(stuckAfter, s.cfg.PodFailureTimeout) }

// unquoted returns the message of an object's status without what it may quote of Secrets: the
// messages of controllers and operators are not under our control.
func (s *session) unquoted(id api.ID, message string) string {
	if message == "" || workloads[id.GroupKind()] && !strings.Contains(message, ": ") {
		return message
	}
	return health.Brief(s.secrets().Scrub(withoutUser(message)))
}

// unstuck drops a workload that is available, as soon as it could be read again.
func (s *session) unstuck(id api.ID) {
	if s.stuck == nil {
		return
	}
	h := s.stuck.of[id]
	switch {
	case h == nil || h.well:
	case time.Since(h.asked) < askAgain:
		*h = hindrance{generation: h.generation, asked: h.asked, next: h.asked.Add(askAgain), times: h.times, well: true}
		s.stuck.wake()
	default:
		s.forget(id)
	}
}

func (s *session) forget(id api.ID) {
	delete(s.stuck.of, id)
	if len(s.stuck.of) == 0 && !s.stuck.asking && !s.stuck.refused {
		s.stuck.timer.Stop()
		s.stuck = nil
	}
}

// wake sets the timer to when the first is to be asked.
func (k *stuck) wake() {
	var first time.Time
	for _, h := range k.of {
		first = retry.Earlier(first, h.next)
	}
	if k.timer.Stop(); !first.IsZero() && !k.asking {
		k.timer.Reset(max(time.Until(first), time.Until(k.rests)))
	}
}

// A question names the pods to read. The answer must not quote the secrets.
type question struct {
	id         api.ID
	generation int64
	pods       string
	secrets    diff.Secrets
}

type reply struct {
	generation int64 // the one that the question is about
	health.Diagnosis
	err error
}

// askWhy reads the pods of the workloads that are due, concurrently with the session.
func (s *session) askWhy(ctx context.Context) {
	if s.stuck == nil || s.stuck.asking {
		return
	}
	now := time.Now()
	var ask []question
	if !now.Before(s.stuck.rests) {
		ask = s.questions(now)
	}
	if len(ask) == 0 {
		if s.stuck != nil {
			s.stuck.wake()
		}
		return
	}
	s.stuck.asking, s.stuck.rests = true, now.Add(s.askAfter())
	stuck := s.stuck // it is kept while asking
	s.running.Go(func() {
		replies := map[api.ID]reply{}
		for _, q := range ask {
			said, err := s.podsSay(ctx, q)
			replies[q.id] = reply{q.generation, said, err}
		}
		stuck.replies.Store(&replies)
		s.watch.Changes.Nudge()
	})
}

// questions returns those that are due, the longest waiting first.
func (s *session) questions(now time.Time) []question {
	var due []api.ID
	for id, h := range s.stuck.of {
		if !h.next.After(now) {
			due = append(due, id)
		}
	}
	slices.SortFunc(due, func(a, b api.ID) int {
		return cmp.Or(s.stuck.of[a].next.Compare(s.stuck.of[b].next), a.Compare(b))
	})
	var ask []question
	for _, id := range due {
		h := s.stuck.of[id]
		w, isWanted := s.wanted.of(id)
		if !isWanted || h.well {
			s.forget(id)
			continue
		}
		if len(ask) == askTogether {
			break
		}
		h.asked = now
		ask = append(ask, question{id, h.generation, podsOf(w.manifest.Object.Object), s.secrets()})
	}
	return ask
}

// secrets returns the Secrets that the cluster should have. They are collected at most once in
// a turn.
func (s *session) secrets() diff.Secrets {
	if s.hidden != nil {
		return *s.hidden
	}
	var all []*unstructured.Unstructured
	for id, w := range s.wanted.all() {
		if id.Group == "" && id.Kind == "Secret" {
			all = append(all, w.manifest.Object.Object)
		}
	}
	found := diff.SecretsOf(all...)
	s.hidden = &found
	return found
}

// podsOf returns the pod selector of a workload: that of its manifest or, for a Job without
// one, that which the server sets.
func podsOf(o *unstructured.Unstructured) string {
	var selector metav1.LabelSelector
	written, _, _ := unstructured.NestedMap(o.Object, "spec", "selector")
	err := runtime.DefaultUnstructuredConverter.FromUnstructured(written, &selector)
	if text := metav1.FormatLabelSelector(&selector); err == nil && text != "<none>" && text != "<error>" {
		return text
	}
	if o.GetKind() == "Job" {
		return "job-name=" + o.GetName()
	}
	return ""
}

// podsSay reads a page of the pods of a workload and, if that explains nothing, one of the
// remaining pods that has not started.
func (s *session) podsSay(ctx context.Context, q question) (health.Diagnosis, error) {
	if q.pods == "" {
		return health.Diagnosis{}, nil // the selector would match all pods of the namespace
	}
	said, more, err := s.readPodPage(ctx, q, "")
	if err == nil && said.Why == "" && more {
		said, _, err = s.readPodPage(ctx, q, "status.phase=Pending")
	}
	said.Why = health.Brief(q.secrets.Scrub(withoutUser(said.Why)))
	return said, err
}

func (s *session) readPodPage(ctx context.Context, q question, fields string) (said health.Diagnosis, more bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, min(s.cfg.Timeout, 10*time.Second))
	defer cancel()
	request := s.conn.Bulk().Get().AbsPath("api", "v1", "namespaces", q.id.Namespace, "pods").
		Param("labelSelector", q.pods).Param("limit", fmt.Sprint(podsRead))
	if fields != "" {
		request.Param("fieldSelector", fields)
	}
	raw, err := connection.Answer(request.Do(ctx))
	if err != nil {
		return said, false, fmt.Errorf("read pods: %w", connection.Plain(err))
	}
	var page struct {
		Metadata metav1.ListMeta
		Items    []health.Pod
	}
	if err := json.Unmarshal(raw, &page); err != nil {
		return said, false, fmt.Errorf("read pods: %w", err)
	}
	return health.Diagnose(page.Items), page.Metadata.Continue != "", nil
}

var userInURL = regexp.MustCompile(`://[^/@\s"]+@`)

// withoutUser removes credentials from the URLs in a text.
func withoutUser(text string) string { return userInURL.ReplaceAllString(text, "://***@") }

// replied records the answers about pods, and returns the objects with news.
func (s *session) replied() (news []api.ID) {
	if s.stuck == nil {
		return nil
	}
	replies := s.stuck.replies.Swap(nil)
	if replies == nil {
		return nil
	}
	s.stuck.asking = false
	for id, r := range *replies {
		h := s.stuck.of[id]
		if h == nil || h.well || h.generation != r.generation {
			continue
		}
		if r.err != nil {
			s.unanswered(h, r.err)
			continue
		}
		if h.take(r.Diagnosis, s.cfg.PodFailureTimeout) {
			news = append(news, id)
		}
	}
	s.stuck.wake()
	return news
}

// take records what the pods say now, and reports whether that is news. When the timeout has
// passed, pods that do not start are read once more before they count as failed.
func (h *hindrance) take(said health.Diagnosis, timeout time.Duration) (news bool) {
	now := time.Now()
	switch {
	case said.Start == health.Starting:
		h.notStarting = time.Time{}
	case said.Start == health.NotStarting && h.notStarting.IsZero():
		h.notStarting = now
	}
	failed := !h.notStarting.IsZero() && now.Sub(h.notStarting) >= timeout
	news = said.Why != h.why || failed != h.failed
	h.why, h.failed = said.Why, failed
	h.next = now.Add(h.times.Next(askAgain, askSeldom))
	if !h.notStarting.IsZero() && !failed {
		h.next = retry.Earlier(h.next, h.notStarting.Add(timeout))
	}
	return news
}

// unanswered postpones a question that got no answer.
func (s *session) unanswered(h *hindrance, err error) {
	h.next = time.Now().Add(h.times.Next(askAgain, askSeldom))
	if apierrors.IsForbidden(err) {
		h.next = time.Now().Add(askSeldom)
		if !s.stuck.refused {
			s.stuck.refused = true
			s.cfg.Log.Warn("pods may not be read: why a workload is not available is not told; give gitfleet the right to list them",
				"cluster", s.cfg.Name, "err", err)
		}
		return
	}
	s.cfg.Log.Debug("pods not read", "cluster", s.cfg.Name, "err", err)
}
