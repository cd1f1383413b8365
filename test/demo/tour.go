package main

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"text/template"
)

// tables prints the output of gitfleet's commands about the fleet.
func (d *demo) tables(ctx context.Context) error {
	for _, args := range [][]string{{"get", "crp", "-o", "wide"}, {"status"}} {
		text, err := d.gitfleet(ctx, args...)
		if err != nil {
			return err
		}
		d.say("", d.paint(dim, "$ "+d.command()+" "+strings.Join(args, " ")), text)
	}
	d.say("", fmt.Sprintf("Ready %.1f s after the start.", d.ready.Seconds()))
	return nil
}

// The image that the tour replaces, and the file of the example that contains it.
const (
	storefrontFile  = "apps/storefront/deployment.yaml"
	storefrontImage = "nginx:1.29"
	badImage        = "nginx:" + badTag
)

// command returns the path of gitfleet, relative to the root of the checkout.
func (d *demo) command() string { return d.short(d.binary) }

// A tour has the values for the template tourText.
type tour struct {
	Root, Gitfleet, Server, Checkout, Repository, Kubeconfig, Config, Log string
	File                                                                  string
	Deployment, Image, BadImage                                           string // the file with the image
	Staged, StagedFile, Text, Stage, Canary                               string // the staged rollout
	Victim                                                                victim
	Keep, Hosted                                                          bool
}

// tourText contains commands to paste. The objects that it names are in examples/quickstart and in the
// directory staged.
const tourText = `
{{head "Now try it."}} Watch in a second terminal:

    cd {{.Root}}
{{- if .Server}}
    export GITFLEET_SERVER={{.Server}}
{{- end}}
    {{.Gitfleet}} status --watch

and in a third:

    cd {{.Root}}
{{- if .Server}}
    export GITFLEET_SERVER={{.Server}}
{{- end}}
    export KUBECONFIG={{.Kubeconfig}} GITFLEET_CONFIG={{.Config}}

{{head "1. Change something in Git."}} {{.Checkout}} is a clone of {{.Repository}}

    echo '  motd: hello from Git' >> {{.Checkout}}/{{.File}}
    git -C {{.Checkout}} commit -am 'Say hello'
    git -C {{.Checkout}} push
    {{.Gitfleet}} sync --wait
    kubectl --context {{.Victim.Cluster}} -n {{.Victim.Namespace}} get configmap {{.Victim.Name}} -o yaml

{{if .Hosted -}}
{{head "2. Change something else on a cluster."}} It is left as it is, and offered as a pull
request after a few seconds; the list has its address.

    kubectl --context {{.Victim.Cluster}} -n orders scale deployment orders --replicas=5
    {{.Gitfleet}} proposals list
{{- else -}}
{{head "2. Change something on a cluster, and see it repaired."}} Or press Enter here.

    kubectl --context {{.Victim.Cluster}} -n {{.Victim.Namespace}} delete configmap {{.Victim.Name}}
    kubectl --context {{.Victim.Cluster}} -n {{.Victim.Namespace}} get configmap {{.Victim.Name}}
    kubectl --context {{.Victim.Cluster}} -n storefront scale deployment storefront --replicas=5
    kubectl --context {{.Victim.Cluster}} -n storefront get deployment storefront
{{- end}}

{{head "3. Break a manifest."}} The commit is refused, with file and line; nothing changes anywhere.

    echo '  broken: [' >> {{.Checkout}}/{{.File}}
    git -C {{.Checkout}} commit -am 'Break it'
    git -C {{.Checkout}} push
    {{.Gitfleet}} sync --wait
    {{.Gitfleet}} status
    git -C {{.Checkout}} revert --no-edit HEAD
    git -C {{.Checkout}} push

{{head "4. Roll out an image that does not exist."}} The update of the first cluster is progressing until its
pods have failed for a few seconds; then the rollout stops and says why, in the
words of a pod. A commit that fixes it continues the rollout.

    sed -i.bak 's|{{.Image}}|{{.BadImage}}|' {{.Checkout}}/{{.Deployment}}
    rm {{.Checkout}}/{{.Deployment}}.bak
    git -C {{.Checkout}} commit -am 'Bump the image'
    git -C {{.Checkout}} push
    {{.Gitfleet}} sync --wait
    {{.Gitfleet}} status
    git -C {{.Checkout}} revert --no-edit HEAD
    git -C {{.Checkout}} push
    {{.Gitfleet}} sync --wait
    {{.Gitfleet}} status

{{head "5. Roll out in stages, with an approval."}} {{.Canary}} gets the text first; the others wait for you.

    sed -i.bak 's|{{.Text}}|Sale starts today|' {{.Checkout}}/{{.StagedFile}}
    rm {{.Checkout}}/{{.StagedFile}}.bak
    git -C {{.Checkout}} commit -am 'Announce the sale'
    git -C {{.Checkout}} push
    {{.Gitfleet}} sync
    {{.Gitfleet}} describe crp/{{.Staged}}

A moment later its run waits for the approval. Then the production clusters follow.

    {{.Gitfleet}} approve crp/{{.Staged}} --stage {{.Stage}} --reason 'looks good'
    {{.Gitfleet}} wait crp/{{.Staged}}
    {{.Gitfleet}} history crp/{{.Staged}}

{{head "6. Compare Git with the clusters, and check what the daemon depends on."}}

    {{.Gitfleet}} diff
    {{.Gitfleet}} doctor

{{dim "The clusters are real API servers with their controllers, but no nodes: the demo reports"}}
{{dim "every pod as running after three seconds. kubectl is optional, everything else works without it."}}
{{dim "gitfleet's settings are in"}} {{.Config}}{{dim ", its log is in"}} {{.Log}}

{{if .Keep}}{{head "Ctrl-C stops everything; the files stay."}}
{{- else}}{{head "Ctrl-C stops and removes everything."}}{{end}}
`

func (d *demo) tour() {
	t := tour{
		Root: shell(d.root), Gitfleet: d.command(), Checkout: shell(d.short(d.repository.checkout)), Repository: d.repository.url,
		Kubeconfig: shell(d.short(d.kubeconfig())), Config: shell(d.short(d.file("gitfleet.yaml"))), Log: d.short(d.daemon.log),
		File: "platform/fleet-info.yaml", Victim: victims[0], Keep: d.keep, Hosted: d.hosted,
		Deployment: storefrontFile, Image: storefrontImage, BadImage: badImage,
		Staged: stagedPlacement, StagedFile: stagedFile, Text: stagedText, Stage: canaryStage, Canary: canary,
	}
	if d.hosted { // not the object with the drift, which would be overwritten
		t.File, t.Victim = "apps/storefront/config.yaml", victims[1]
	}
	if d.daemon.address != daemonAddress {
		t.Server = "http://" + d.daemon.address
	}
	text, err := d.render(t)
	if err != nil {
		panic("demo: " + err.Error()) // the text is a constant
	}
	d.say(strings.TrimSuffix(text, "\n"))
}

func (s *screen) render(t tour) (string, error) {
	paint := template.FuncMap{
		"head": func(text string) string { return s.paint(bold, text) },
		"dim":  func(text string) string { return s.paint(dim, text) },
	}
	parsed, err := template.New("tour").Funcs(paint).Parse(tourText)
	if err != nil {
		return "", err
	}
	var out strings.Builder
	err = parsed.Execute(&out, t)
	return out.String(), err
}

var plain = regexp.MustCompile(`^[\w./:@%+,-]+$`)

// shell quotes a word for a shell.
func shell(word string) string {
	if plain.MatchString(word) {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
