// Package occurrence says what has happened to placements, clusters, suspensions, commits and the repository: it compares what the ledger
// has before and after a plan, an observation, an order, the load of a commit or a poll.
//
// The history, the metrics of rollouts, the traces of commits and log lines are written from the occurrences of OfPlan,
// OfObservation, OfMember, OfCommit and OfSuspensions. Kubernetes events of OfCommit, OfPolls and OfSuspensions are made by package event,
// and saved together with the change of the ledger. package gitsource logs its polls itself, and the history has none.
//
// All other Kubernetes events are written from the same comparisons, which have a function for each subject: ClusterState.Since,
// RolloutSince, RunsSince, Removing and Removed, and ledger.MemberState.Since. package status calls them with what two reports were made
// of, and is not handed the occurrences themselves:
//   - A report covers all observations since the one before. Those of a large fleet may be 100,000, so that what follows from them is
//     published in small batches and not kept. status reads both states of a cluster that has changed anyway, for its conditions.
//   - If the process ends after the save of a plan and before its report, the next process has no occurrences of that plan, but its
//     first report still says that a rollout has stopped or that a placement was deleted.
//
// Some things only events say, and status finds them: that a condition of a placement or a cluster has changed, that the scheduler has
// selected another cluster, or one no longer, and that objects fail, drift or differ.
//
// The list of Kubernetes events is not read from the history: they have counts and the times of the first and last repetition, and some
// happen that the history does not have, which may be truncated besides. The ledger keeps them, so that the list outlives a restart and a
// failover.
package occurrence

import (
	"slices"
	"time"

	"github.com/gitfleet/gitfleet/gitsource/hub"
	"github.com/gitfleet/gitfleet/reconciler/history"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
)

// An Occurrence is something that has happened to a placement, to a placement on a cluster, to a member cluster, to a commit or to the
// repository, or that a user has ordered. A restart repeats nothing that was saved; an observation may be made again that was not saved
// yet. Agents, proposals and commands add entries of their own to the history.
type Occurrence struct {
	// Entry is what the history has of it. Without an event, the history does not have it.
	history.Entry
	// Clusters are where it has happened, if the history has it of several clusters; Cluster is empty then.
	Clusters []string
	// Rollout is what has happened to the rollout of the placement; empty if nothing has. RolloutTook is how long a rollout that is
	// finished took.
	Rollout     RolloutStep
	RolloutTook time.Duration
	// InForce is the commit that has come into force; nil otherwise. After a restart, a commit comes into force again, which the
	// history does not have.
	InForce *hub.Snapshot
	// Refused is why a commit is refused, in full; nil otherwise. NotAccepted is why the newest commit of the remote is not accepted, so that
	// it is not loaded; empty otherwise. StaysInForce is the commit that is in force instead; empty if none is.
	Refused      error
	NotAccepted  string
	StaysInForce string
	// Unreadable is why the repository cannot be read any more, or now for another reason; Readable says that it can be read again.
	Unreadable string
	Readable   bool
	// Suspended is the suspension that has begun or changed, and Resumed that which has ended; nil otherwise.
	Suspended, Resumed *ledger.Suspension
	// LoadTook is how long loading a commit took that has come into force or is refused.
	LoadTook time.Duration
	// RenamedTo is the new name of a member that was renamed; empty otherwise.
	RenamedTo string
	// Stage is the stage of the content assigned to the cluster that has ended at Time, without success if the event is Failed; empty
	// if none has. Since is the end of the stage before, and Detected when the content was detected, or the cluster was
	// selected if that was later; zero if it is not known.
	Stage           string
	Since, Detected time.Time
}

// A RolloutStep is something that has happened to a rollout.
type RolloutStep string

// The steps.
const (
	RolloutStarted  RolloutStep = "started"
	RolloutFinished RolloutStep = "finished"
	RolloutStopped  RolloutStep = "stopped"
)

// The stages of a commit on a cluster.
const (
	StageApplied   = "applied"
	StageAvailable = "available"
)

// Entries returns what the history has of occurrences.
func Entries(all []Occurrence) []history.Entry {
	entries := make([]history.Entry, 0, len(all))
	for i := range all {
		switch o := &all[i]; {
		case o.Event == "":
		case len(o.Clusters) == 0:
			entries = append(entries, o.Entry)
		default:
			entries = slices.Grow(entries, len(o.Clusters))
			for _, cluster := range o.Clusters {
				entries = append(entries, o.Entry)
				entries[len(entries)-1].Cluster = cluster
			}
		}
	}
	return entries
}

// CommitEntry returns an entry about a commit.
func CommitEntry(event history.Event, c hub.Commit, message string) history.Entry {
	return history.Entry{Kind: history.Commit, Event: event, Commit: c.Hash, Author: c.Author, Signer: c.Signer, Subject: c.Subject, Message: message}
}
