package reconciler

import (
	"fmt"
	"strings"
	"time"

	"github.com/gitfleet/gitfleet/placement"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/history"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
	"github.com/gitfleet/gitfleet/reconciler/occurrence"
)

func (r *orderRun) suspend(o Order) (string, error) {
	subject, err := r.subjectOf(o)
	if err != nil {
		return "", err
	}
	return r.beginSuspension(subject, o)
}

// beginSuspension records a suspension of a subject.
func (r *orderRun) beginSuspension(subject ledger.Subject, o Order) (string, error) {
	until, err := o.until(r.now)
	if err != nil {
		return "", err
	}
	reason, by := strings.TrimSpace(o.Reason), strings.TrimSpace(o.By)
	switch {
	case reason == "":
		return "", refuse("--reason is required")
	case !plainText(reason) || !plainText(by):
		return "", refuse("the reason and the name must be one line of text of at most %d bytes", longestText)
	}
	s := ledger.Suspension{Subject: subject, By: by, Reason: reason, Since: r.now, Until: until, Overrun: o.Overrun}
	r.ledger.Suspend(s)
	return subject.String() + " is " + s.String(), nil
}

// endSuspension ends a suspension of a subject. It returns what is so now.
func (r *orderRun) endSuspension(subject ledger.Subject, now string) (string, error) {
	before, found := r.ledger.Suspension(subject)
	if !found {
		return "", r.notSuspended(subject)
	}
	r.ledger.Resume(subject, r.now)
	return subject.String() + " is " + now + "; it was " + before.String(), nil
}

// until returns the time at which the suspension ends; zero if it has no end.
func (o Order) until(now time.Time) (time.Time, error) {
	switch {
	case o.For.Duration != 0 && !o.Until.IsZero():
		return time.Time{}, refuse("--for and --until exclude each other")
	case o.For.Duration < 0:
		return time.Time{}, refuse("--for %s: must be more than zero", o.For.Duration)
	case o.For.Duration > 0:
		return now.Add(o.For.Duration).UTC().Truncate(time.Second), nil
	case !o.Until.IsZero() && !o.Until.After(now):
		return time.Time{}, refuse("--until %s: that is past", o.Until.UTC().Format(time.RFC3339))
	}
	return o.Until.UTC(), nil
}

// resume ends a suspension; the subject may no longer exist. Otherwise it resumes the placement.
func (r *orderRun) resume(o Order) (string, error) {
	if o.Stopped {
		return r.resumeRollout(o)
	}
	if o.FailedContent {
		return r.resumeContent(o)
	}
	if subject, found := r.suspended(o); found {
		answer, err := r.endSuspension(subject, "resumed")
		if err != nil {
			return "", err
		}
		if stops := r.stops(subject.Placement); len(stops) > 0 {
			answer += "; " + stillStopped(subject.Placement, stops)
		}
		return answer, nil
	}
	subject, err := r.subjectOf(o)
	if err != nil {
		return "", err
	}
	key := subject.Placement
	stops := r.stops(key)
	switch {
	case key == (api.PlacementKey{}) || subject.Cluster != "":
	case r.unanswered[key] > 0:
		return r.resumeScheduling(key, o)
	case len(stops) > 0:
		return "", refuse("%s is not suspended; %s", key, stillStopped(key, stops))
	}
	return "", r.notSuspended(subject)
}

// resumeRollout resumes a stopped rollout. The user has to request that explicitly and give a reason, since ending a
// suspension says nothing about a failed update.
func (r *orderRun) resumeRollout(o Order) (string, error) {
	subject, err := r.subjectOf(o)
	if err != nil {
		return "", err
	}
	key, reason := subject.Placement, strings.TrimSpace(o.Reason)
	stops := r.stops(key)
	switch {
	case key == (api.PlacementKey{}) || subject.Cluster != "":
		return "", refuse("--stopped is about the whole rollout of a placement: name crp/NAME or rp/NAMESPACE/NAME, without --cluster")
	case len(stops) == 0:
		return "", refuse("the rollout of %s is not stopped", key)
	case reason == "":
		return "", refuse("--reason is required: why may the rollout continue although an update failed?")
	case !plainText(reason):
		return "", refuse("the reason must be one line of text of at most %d bytes", longestText)
	}
	failed := "cluster " + stops[0].Cluster + " is not available"
	if len(stops) > 1 {
		failed = "clusters " + occurrence.FailedClusters(stops) + " are not available"
	}
	r.ledger.ResumeRollout(key, r.now)
	r.record(history.Proceeded, subject, o.By, "although "+failed+": "+reason)
	return fmt.Sprintf("the rollout of %s continues within its budget, although %s", key, failed), nil
}

// stops returns the failed updates that stop the rollout of a placement.
func (r *orderRun) stops(key api.PlacementKey) []placement.Stop {
	if p := r.ledger.Placement(key); p != nil && !p.Deleted {
		return p.Stops
	}
	return nil
}

// stillStopped returns a message that says why a rollout is stopped and how to resume it.
func stillStopped(key api.PlacementKey, stops []placement.Stop) string {
	return fmt.Sprintf("its rollout is stopped by the failed update of %s: to let it go on all the same, use gitfleet resume %s --stopped --reason TEXT",
		occurrence.FailedClusters(stops), key)
}

// resumeScheduling makes a placement schedule without counting the clusters that have not answered since the ledger was
// lost.
func (r *orderRun) resumeScheduling(key api.PlacementKey, o Order) (string, error) {
	next := *r.ledger.Placement(key)
	next.Rebuilt = false
	r.ledger.SetPlacement(key, next)
	why := fmt.Sprintf("although clusters that may hold it have not answered (%d)", r.unanswered[key])
	r.record(history.Proceeded, ledger.Subject{Placement: key}, o.By, why)
	return fmt.Sprintf("all clusters of %s are chosen, %s", key, why), nil
}

// notSuspended returns the error for a subject that is not suspended. It lists the existing suspensions.
func (r *orderRun) notSuspended(s ledger.Subject) error {
	var all []string
	for _, x := range r.ledger.Suspensions() {
		if x.Effect == s.Effect {
			all = append(all, x.Subject.String())
		}
	}
	if all == nil {
		return refuse("%s is not %s, and nothing else is either", s, s.Effect.Verb())
	}
	return refuse("%s is not %s; %[2]s are: %s", s, s.Effect.Verb(), strings.Join(all, ", "))
}

// suspended finds the suspension that an order refers to, even if its subject no longer exists.
func (r *orderRun) suspended(o Order) (ledger.Subject, bool) {
	object, _ := api.ParseObject(o.Subject, o.Namespace)
	key, err := api.ParsePlacement(o.Subject)
	for _, s := range r.ledger.Suspensions() {
		var named bool
		switch {
		case s.Effect != ledger.StopsWrites:
		case s.Object != api.ID{}:
			named = s.Cluster == o.Cluster && object.Means(s.Object)
		case err == nil:
			named = s.Placement == key && s.Cluster == o.Cluster
		default:
			named = api.NamesClusters(object.Kind) && s.Placement == api.PlacementKey{} && s.Cluster == object.Name && o.Cluster == ""
		}
		if named {
			return s.Subject, true
		}
	}
	return ledger.Subject{}, false
}

func (r *orderRun) freeze(o Order) (string, error) {
	subject, err := r.frozenSubject(o)
	if err != nil {
		return "", err
	}
	if subject.Placement != (api.PlacementKey{}) {
		if _, err := r.subjectOf(o); err != nil { // it has to exist
			return "", err
		}
	}
	answer, err := r.beginSuspension(subject, o)
	if err != nil {
		return "", err
	}
	return answer + "; repairs, rollbacks and removals go on", nil
}

// unfreeze ends a freeze; the placement may no longer exist.
func (r *orderRun) unfreeze(o Order) (string, error) {
	subject, err := r.frozenSubject(o)
	if err != nil {
		return "", err
	}
	return r.endSuspension(subject, "not frozen any more")
}

// frozenSubject returns the subject of a freeze: a placement, or the fleet if none is named.
func (r *orderRun) frozenSubject(o Order) (ledger.Subject, error) {
	if o.Cluster != "" || o.Namespace != "" {
		return ledger.Subject{}, refuse("a freeze is about a placement or the whole fleet: it goes without --cluster and --namespace")
	}
	if o.Subject == "" {
		return ledger.Subject{Effect: ledger.Freezes}, nil
	}
	key, err := api.ParsePlacement(o.Subject)
	if err != nil {
		return ledger.Subject{}, refuse("%s cannot be frozen: name crp/NAME or rp/NAMESPACE/NAME, or nothing for the whole fleet", o.Subject)
	}
	return ledger.Subject{Placement: key, Effect: ledger.Freezes}, nil
}
