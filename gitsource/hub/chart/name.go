package chart

import (
	"errors"
	"fmt"
	"text/template"
	"text/template/parse"
	"time"
)

// nameSteps and nameBytes limit the template of a name.
const (
	nameSteps = 10_000
	nameBytes = 1 << 16
)

// Name executes the template of the name of a release, as --name-template of helm does.
func Name(text string) (string, error) {
	b := &budget{steps: nameSteps, made: nameBytes, output: nameBytes, deadline: time.Now().Add(time.Minute)} // the steps end it earlier
	e := &engine{budget: b, chance: &chance{budget: b, other: func(int) bool { return false }}, prepared: map[*parse.Tree]bool{}}
	root := template.New("chart")
	root.Funcs(e.functions(root))
	t, err := e.parse(root, "nameTemplate", text)
	if err != nil {
		return "", errors.New(oneLine(err.Error()))
	}
	w := &writer{budget: b, file: true}
	if err := t.Execute(w, nil); err != nil {
		return "", errors.New(oneLine(err.Error()))
	}
	if len(e.chance.calls) > 0 {
		return "", fmt.Errorf("%s has another result each time, so that the release would have another name; write releaseName", e.chance.calls[0])
	}
	return string(w.text), nil
}
