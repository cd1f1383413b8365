package main

import (
	"errors"
	"time"

	"github.com/spf13/pflag"

	"github.com/gitfleet/gitfleet/gitsource/hub"
	"github.com/gitfleet/gitfleet/reconciler/forecast"
)

// An outlookInput is the arguments of a command that plans offline.
type outlookInput struct {
	clusters string // a file: the observed fleet; may be empty
	current  string // a file: an earlier plan; may be empty
	// base is the commit to compare with; nil if there is none.
	base *hub.Snapshot
}

func (in *outlookInput) bind(f *pflag.FlagSet) {
	f.StringVar(&in.clusters, "clusters", "", "file of MemberClusters with their status: the observed fleet")
	f.StringVar(&in.current, "current", "", "JSON of an earlier plan: what is held now")
}

// about plans a snapshot.
func (in outlookInput) about(s *hub.Snapshot) (*forecast.Forecast, error) {
	input, err := in.input(s)
	if err != nil {
		return nil, err
	}
	if input.Before, err = in.earlier(); err != nil {
		return nil, err
	}
	return forecast.Of(input)
}

// input is the input of a forecast without an earlier plan.
func (in outlookInput) input(s *hub.Snapshot) (forecast.Input, error) {
	input := forecast.Input{Snapshot: s, Now: time.Now()}
	if in.clusters == "" {
		return input, nil
	}
	var err error
	input.Observed, err = readFleet(in.clusters)
	return input, err
}

// earlier returns the plan to compare with; nil if there is none.
func (in outlookInput) earlier() (*forecast.Document, error) {
	switch {
	case in.base != nil && in.current != "":
		return nil, errors.New("--current cannot be combined with FROM..TO")
	case in.current != "":
		return readCurrent(in.current)
	case in.base != nil:
		o, err := outlookInput{clusters: in.clusters}.about(in.base)
		if err != nil {
			return nil, err
		}
		d := o.Describe()
		return &d, nil
	}
	return nil, nil
}
