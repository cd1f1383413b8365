package pods

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/diff"
	"github.com/gitfleet/gitfleet/reconciler/health"
	"github.com/gitfleet/gitfleet/reconciler/member/connection"
)

const (
	podsRead   = 20 // of one request
	eventsRead = 100
	claimsRead = 3 // of one pod
)

// A question names the workload to read about. The answer must not quote the secrets.
type question struct {
	id         api.ID
	uid        types.UID // empty if it is not known
	generation int64
	selector   string
	secrets    diff.Secrets
}

// A forbiddenError says that a resource may not be read.
type forbiddenError struct {
	resource string
	err      error
}

func (e *forbiddenError) Error() string { return "gitfleet may not read " + e.resource }

func (e *forbiddenError) Unwrap() error { return e.err }

// A reader reads about one workload.
type reader struct {
	conn *connection.Conn
	question
	// refused are errors about what may not be read.
	refused []error
}

// diagnose reads a page of the pods of a workload and, if that explains nothing, one of the
// remaining pods that has not started. If its pods leave something open, it also reads events: about
// pods that could not be created, and about what a pod waits for. Without the permission for that,
// the result has what pods say, and refused is why there is no more.
func diagnose(ctx context.Context, conn *connection.Conn, q question) (diagnosis health.Diagnosis, refused, err error) {
	r := &reader{conn: conn, question: q}
	if q.id.Kind == "PersistentVolumeClaim" {
		why, stays := r.claim(ctx, q.id.Name)
		diagnosis = health.Diagnosis{Why: why, Blocked: why != "", Pending: stays}
	} else if diagnosis, err = r.pods(ctx); err == nil {
		diagnosis = r.lookFurther(ctx, diagnosis)
	}
	if refused = errors.Join(r.refused...); refused != nil && diagnosis.Why == "" {
		diagnosis.Why = "the reason is not known: " + r.refused[0].Error() + " there"
	}
	diagnosis.Why = Scrub(diagnosis.Why, q.secrets)
	if len(diagnosis.Pod) > connection.MaxName {
		diagnosis.Pod = ""
	}
	return diagnosis, refused, err
}

// pods reads the pods of the workload.
func (r *reader) pods(ctx context.Context) (diagnosis health.Diagnosis, err error) {
	if r.id.Kind == "Pod" {
		diagnosis, _, err = r.readPods(ctx, "metadata.name="+r.id.Name)
		return diagnosis, err
	}
	if r.selector == "" {
		return diagnosis, nil // the selector would match all pods of the namespace
	}
	diagnosis, more, err := r.readPods(ctx, "")
	if err == nil && diagnosis.Why == "" && more {
		diagnosis, _, err = r.readPods(ctx, "status.phase=Pending")
	}
	return diagnosis, err
}

func (r *reader) readPods(ctx context.Context, fields string) (diagnosis health.Diagnosis, more bool, err error) {
	var page struct {
		Metadata metav1.ListMeta
		Items    []health.Pod
	}
	params := map[string]string{"limit": fmt.Sprint(podsRead), "fieldSelector": fields}
	if r.id.Kind != "Pod" {
		params["labelSelector"] = r.selector
	}
	if err := r.read(ctx, "pods", "", params, &page); err != nil {
		return diagnosis, false, err
	}
	if r.id.Kind == "CronJob" {
		page.Items = slices.DeleteFunc(page.Items, func(p health.Pod) bool { return !r.isBelow(p.Metadata.Labels["job-name"]) })
	}
	return health.Diagnose(page.Items), page.Metadata.Continue != "", nil
}

// lookFurther adds what events say to what pods say.
func (r *reader) lookFurther(ctx context.Context, diagnosis health.Diagnosis) health.Diagnosis {
	if creator := string(workloads[r.id.GroupKind()]); creator != "" && !diagnosis.Blocked && diagnosis.Start != health.NotStarting {
		if refused := r.notCreated(ctx, creator, diagnosis.Newest); refused != "" {
			diagnosis.Why, diagnosis.Pod, diagnosis.Blocked, diagnosis.Pending = refused, "", true, true
			return diagnosis
		}
	}
	if diagnosis.Waiting == nil {
		return diagnosis
	}
	p := diagnosis.Waiting
	for _, name := range p.Claims()[:min(claimsRead, len(p.Claims()))] {
		if why, _ := r.claim(ctx, name); why != "" {
			diagnosis.Why, diagnosis.Blocked = diagnosis.Why+"; "+why, true
			return diagnosis
		}
	}
	if !p.Unscheduled() {
		if e := r.newest(r.events(ctx, "Pod", p.Metadata.Name), time.Time{}, func(e *event) bool { return e.Type == "Warning" && strings.HasPrefix(e.Reason, "Failed") }); e != nil {
			diagnosis.Why, diagnosis.Blocked = diagnosis.Why+": "+e.text(), true
		}
	}
	return diagnosis
}

// notCreated returns why pods of the workload could not be created since the newest was.
func (r *reader) notCreated(ctx context.Context, creator string, newest time.Time) string {
	name := ""
	if creator == r.id.Kind {
		name = r.id.Name
	}
	e := r.newest(r.events(ctx, creator, name), newest, func(e *event) bool {
		o := e.InvolvedObject
		return e.Reason == "FailedCreate" && (name == "" && r.isBelow(o.Name) || o.Name == name && (r.uid == "" || o.UID == r.uid))
	})
	if e == nil {
		return ""
	}
	return e.text()
}

// isBelow reports whether an object between the workload and its pods has this name.
func (r *reader) isBelow(name string) bool {
	rest, found := strings.CutPrefix(name, r.id.Name+"-")
	return found && rest != "" && !strings.Contains(rest, "-")
}

// claim returns why a PersistentVolumeClaim is pending, and whether it is and does not only wait for
// its first pod.
func (r *reader) claim(ctx context.Context, name string) (why string, pending bool) {
	var claim struct{ Status struct{ Phase string } }
	err := r.read(ctx, "persistentvolumeclaims", name, nil, &claim)
	switch {
	case connection.NotFound(err):
		return fmt.Sprintf("the PersistentVolumeClaim %s does not exist", name), false
	case err != nil || claim.Status.Phase != "Pending":
		return "", false
	}
	events := r.events(ctx, "PersistentVolumeClaim", name)
	if e := r.newest(events, time.Time{}, func(e *event) bool { return e.Type == "Warning" || e.Reason == "FailedBinding" }); e != nil {
		return fmt.Sprintf("the PersistentVolumeClaim %s is pending: %s", name, e.text()), true
	}
	last := r.newest(events, time.Time{}, func(*event) bool { return true })
	return "", last == nil || last.Reason != "WaitForFirstConsumer"
}

// An event has the fields of an Event that say what happened, and when last.
type event struct {
	InvolvedObject struct {
		Name string
		UID  types.UID
	}
	Type, Reason, Message                    string
	FirstTimestamp, LastTimestamp, EventTime time.Time
	Series                                   *struct{ LastObservedTime time.Time }
}

func (e *event) text() string {
	return e.Reason + ": " + health.OneLine(e.Message)
}

func (e *event) last() time.Time {
	times := []time.Time{e.FirstTimestamp, e.LastTimestamp, e.EventTime}
	if e.Series != nil {
		times = append(times, e.Series.LastObservedTime)
	}
	return slices.MaxFunc(times, time.Time.Compare)
}

// events reads events about the objects of a kind in the namespace, of all names if name is empty:
// then only those about what could not be created.
func (r *reader) events(ctx context.Context, kind, name string) []event {
	var page struct{ Items []event }
	fields := "involvedObject.kind=" + kind
	if name != "" {
		fields += ",involvedObject.name=" + name
	} else {
		fields += ",reason=FailedCreate"
	}
	if err := r.read(ctx, "events", "", map[string]string{"fieldSelector": fields, "limit": fmt.Sprint(eventsRead)}, &page); err != nil {
		return nil
	}
	return page.Items
}

// newest returns the last of some events that is of interest and not before a time; nil if there is
// none.
func (r *reader) newest(events []event, since time.Time, of func(*event) bool) (last *event) {
	for i := range events {
		if e := &events[i]; of(e) && !e.last().Before(since) && (last == nil || e.last().After(last.last())) {
			last = e
		}
	}
	return last
}

// read reads an object or a list of the namespace. It records what may not be read.
func (r *reader) read(ctx context.Context, resource, name string, params map[string]string, into any) error {
	ctx, cancel := context.WithTimeout(ctx, min(r.conn.Timeout(), 10*time.Second))
	defer cancel()
	path := []string{"api", "v1", "namespaces", r.id.Namespace, resource}
	if name != "" {
		path = append(path, name)
	}
	request := r.conn.Bulk().Get().AbsPath(path...)
	for name, value := range params {
		if value != "" {
			request.Param(name, value)
		}
	}
	raw, err := connection.Answer(request.Do(ctx))
	if apierrors.IsForbidden(err) && resource != "pods" {
		r.refused = append(r.refused, &forbiddenError{resource, err})
	}
	if err == nil {
		err = json.Unmarshal(raw, into)
	}
	if err != nil {
		return fmt.Errorf("read %s: %w", resource, connection.Plain(err))
	}
	return nil
}
