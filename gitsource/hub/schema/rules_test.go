package schema

import (
	"encoding/base64"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/gitfleet/gitfleet/gitsource/hub/document"
)

// A warning of what every API server refuses names the field and what is wrong with it.
func TestRulesOfAPIServers(t *testing.T) {
	pod := func(spec string) string {
		return "{apiVersion: v1, kind: Pod, metadata: {name: a, namespace: b}, spec: {containers: [{name: web, image: web}], " + spec + "}}"
	}
	container := func(fields string) string {
		return "{apiVersion: v1, kind: Pod, metadata: {name: a, namespace: b}, spec: {containers: [{name: web, image: web, " + fields + "}]}}"
	}
	service := func(spec string) string {
		return "{apiVersion: v1, kind: Service, metadata: {name: a, namespace: b}, spec: {" + spec + "}}"
	}
	named := func(version, kind, name string) string {
		return "{apiVersion: " + version + ", kind: " + kind + ", metadata: {name: \"" + name + "\", namespace: b}}"
	}
	for name, test := range map[string]struct{ object, want string }{
		"env twice":                         {container("env: [{name: A, value: x}, {name: A, value: y}]"), `spec.containers[0].env[1]: has the same name A as item 0`},
		"port twice":                        {container("ports: [{containerPort: 80}, {containerPort: 80, name: b}]"), "ports[1]: has the same containerPort 80, protocol TCP as item 0"},
		"port twice, once by default":       {container("ports: [{containerPort: 80}, {containerPort: 80, protocol: TCP}]"), "ports[1]"},
		"port with two protocols":           {container("ports: [{containerPort: 53}, {containerPort: 53, protocol: UDP}]"), ""},
		"mount twice":                       {`{apiVersion: v1, kind: Pod, metadata: {name: a, namespace: b}, spec: {volumes: [{name: v}], containers: [{name: w, image: w, volumeMounts: [{name: v, mountPath: /a}, {name: v, mountPath: /a}]}]}}`, "volumeMounts[1]: has the same mountPath /a"},
		"env without a name":                {container("env: [{value: x}]"), "env[0]: has no name"},
		"service port twice":                {service("ports: [{name: a, port: 80}, {name: b, port: 80}]"), "spec.ports[1]: has the same port 80, protocol TCP"},
		"service port name twice":           {service("ports: [{name: a, port: 80}, {name: a, port: 81}]"), `spec.ports[1].name: "a" is used twice`},
		"finalizer twice":                   {"{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: b, finalizers: [x/y, x/y]}}", "metadata.finalizers[1]: is the same as item 0"},
		"container of both kinds":           {pod("initContainers: [{name: web, image: web}]"), "initContainers[0].name: a container is named"},
		"no such volume":                    {container("volumeMounts: [{name: v, mountPath: /a}]"), `volumeMounts[0].name: there is no volume "v"`},
		"a node":                            {pod("nodeName: worker-1"), "spec.nodeName: binds the Pod to a node of this name"},
		"a word in lower case":              {container("imagePullPolicy: always"), "imagePullPolicy: must be one of Always, IfNotPresent, Never"},
		"no image":                          {"{apiVersion: v1, kind: Pod, metadata: {name: a, namespace: b}, spec: {containers: [{name: w}]}}", "image: required, and missing"},
		"a misspelt image":                  {"{apiVersion: v1, kind: Pod, metadata: {name: a, namespace: b}, spec: {containers: [{name: w, imag: x}]}}", "imag: unknown field"},
		"two sources":                       {pod("volumes: [{name: v, emptyDir: {}, secret: {secretName: s}}]"), "spec.volumes[0]: has emptyDir and secret"},
		"a port that is too large":          {container("ports: [{containerPort: 80000}]"), "containerPort: must be between 1 and 65535"},
		"a long name of a port":             {container("ports: [{containerPort: 80, name: administration-port}]"), `"administration-port" is not a valid name of a port`},
		"request above the limit":           {container("resources: {requests: {cpu: 2}, limits: {cpu: 1}}"), "resources.requests.cpu: must not be more than the limit"},
		"no ports":                          {service("selector: {app: a}"), "spec.ports: required, and missing"},
		"headless":                          {service("clusterIP: None, selector: {app: a}"), ""},
		"labels unlike the selector":        {"{apiVersion: apps/v1, kind: Deployment, metadata: {name: a, namespace: b}, spec: {selector: {matchLabels: {app: x}}, template: {metadata: {labels: {app: y}}, spec: {containers: [{name: w, image: w}]}}}}", "spec.template.metadata.labels: do not match the selector"},
		"negative replicas":                 {"{apiVersion: apps/v1, kind: Deployment, metadata: {name: a, namespace: b}, spec: {replicas: -1, selector: {matchLabels: {app: x}}, template: {metadata: {labels: {app: x}}, spec: {containers: [{name: w, image: w}]}}}}", "spec.replicas: must not be negative"},
		"a Job that always restarts":        {"{apiVersion: batch/v1, kind: Job, metadata: {name: a, namespace: b}, spec: {template: {spec: {containers: [{name: w, image: w}]}}}}", "restartPolicy: must be OnFailure or Never here, not Always"},
		"no schedule":                       {"{apiVersion: batch/v1, kind: CronJob, metadata: {name: a, namespace: b}, spec: {schedule: daily, jobTemplate: {spec: {template: {spec: {restartPolicy: Never, containers: [{name: w, image: w}]}}}}}}", `spec.schedule: "daily" is not a schedule`},
		"no range of addresses":             {"{apiVersion: networking.k8s.io/v1, kind: NetworkPolicy, metadata: {name: a, namespace: b}, spec: {podSelector: {}, ingress: [{from: [{ipBlock: {cidr: 10.0.0.1}}]}]}}", "ipBlock.cidr: \"10.0.0.1\" is not a range"},
		"a ConfigMap":                       {named("v1", "ConfigMap", "My_App"), `metadata.name: "My_App" is not a valid name of a ConfigMap`},
		"a Service":                         {named("v1", "Service", "1_web"), `"1_web" is not a valid name of a Service`},
		"a Role":                            {named("rbac.authorization.k8s.io/v1", "Role", "Shop readers (süd)"), ""},
		"a ClusterRole":                     {"{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: 'system:auth-delegator'}}", ""},
		"a budget":                          {named("policy/v1", "PodDisruptionBudget", "My_App"), ""},
		"a long CronJob":                    {named("batch/v1", "CronJob", strings.Repeat("a", 53)), "must be no more than 52 characters"},
		"a class of Kubernetes":             {"{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: system-mine}, value: 1}", "the prefix system- is reserved"},
		"a StatefulSet with a dot":          {"{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: a.b, namespace: b}}", `"a.b" is not a valid name of a StatefulSet`},
		"a custom resource":                 {named("example.com/v1", "Widget", "My_App"), `"My_App" is not a valid name of a Widget`},
		"a definition":                      {"{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: widget.example.com}, spec: {group: example.com, names: {plural: widgets}}}", "must be widgets.example.com"},
		"a value of a label":                {"{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: b, labels: {team: web shop}}}", `metadata.labels.team: "web shop" is not a valid value of a label`},
		"a value of a label of a Secret":    {"{apiVersion: v1, kind: Secret, metadata: {name: a, namespace: b, labels: {team: web shop}}}", "metadata.labels.team: is not a valid value of a label"},
		"a key of an annotation":            {"{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: b, annotations: {a b: c}}}", `"a b" is not a valid key of an annotation`},
		"a key of a Secret":                 {"{apiVersion: v1, kind: Secret, metadata: {name: a, namespace: b}, stringData: {a/b: c}}", "is not a valid key"},
		"a ServiceAccount of a RoleBinding": {"{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: a, namespace: b}, roleRef: {kind: Role, name: a}, subjects: [{kind: ServiceAccount, name: c}]}", ""},
		"one of a ClusterRoleBinding":       {"{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, metadata: {name: a}, roleRef: {kind: ClusterRole, name: a}, subjects: [{kind: ServiceAccount, name: c}]}", "subjects[0].namespace: required"},
		"a TLS Secret":                      {"{apiVersion: v1, kind: Secret, metadata: {name: a, namespace: b}, type: kubernetes.io/tls, data: {tls.crt: YQ==}}", "data[tls.key]: required"},
		"a key of both kinds":               {"{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: b}, data: {a: b}, binaryData: {a: Yg==}}", "binaryData.a: data has the same key"},
		"a negative quota":                  {"{apiVersion: v1, kind: ResourceQuota, metadata: {name: a, namespace: b}, spec: {hard: {pods: -1}}}", "spec.hard.pods: must not be negative"},
		"a class without a provisioner":     {"{apiVersion: storage.k8s.io/v1, kind: StorageClass, metadata: {name: a}}", "provisioner: required"},
		"a budget in quotes":                {"{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: a, namespace: b}, spec: {minAvailable: '1'}}", `spec.minAvailable: "1" is neither a whole number nor a percentage`},
		"a budget in percent":               {"{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: a, namespace: b}, spec: {minAvailable: 50%}}", ""},
		"a surge in quotes":                 {"{apiVersion: apps/v1, kind: Deployment, metadata: {name: a, namespace: b}, spec: {strategy: {rollingUpdate: {maxSurge: '1'}}, selector: {matchLabels: {app: x}}, template: {metadata: {labels: {app: x}}, spec: {containers: [{name: w, image: w}]}}}}", "rollingUpdate.maxSurge: \"1\" is neither"},
		"a space after an image":            {"{apiVersion: v1, kind: Pod, metadata: {name: a, namespace: b}, spec: {containers: [{name: w, image: 'w '}]}}", "image: must not begin or end with a space"},
		"no name server":                    {pod("dnsPolicy: None"), "spec.dnsConfig.nameservers: required, and missing"},
		"a port of both kinds":              {"{apiVersion: networking.k8s.io/v1, kind: Ingress, metadata: {name: a, namespace: b}, spec: {defaultBackend: {service: {name: a, port: {name: http, number: 80}}}}}", "service.port: has a name and a number"},
		"a range of ports backwards":        {"{apiVersion: networking.k8s.io/v1, kind: NetworkPolicy, metadata: {name: a, namespace: b}, spec: {podSelector: {}, ingress: [{ports: [{port: 80, endPort: 70}]}]}}", "endPort: must be between 80 and 65535"},
		"a controller without a domain":     {"{apiVersion: networking.k8s.io/v1, kind: IngressClass, metadata: {name: a}, spec: {controller: nginx}}", `spec.controller: "nginx" is not the name of a controller`},
		"a webhook":                         {"{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingWebhookConfiguration, metadata: {name: a}, webhooks: [{name: pods, sideEffects: None, admissionReviewVersions: [v1], clientConfig: {url: 'https://a'}}]}", `webhooks[0].name: "pods" is not the name of a webhook`},
		"a webhook without a client":        {"{apiVersion: admissionregistration.k8s.io/v1, kind: MutatingWebhookConfiguration, metadata: {name: a}, webhooks: [{name: a.b.c, sideEffects: None, admissionReviewVersions: [v1], clientConfig: {}}]}", "webhooks[0].clientConfig: has no url or service"},
		"a variable of Flux in a name":      {named("v1", "ConfigMap", "${APP}-web"), "replaced only in an Overlay or ClusterOverlay with postBuild"},
		"1 MiB":                             {"{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: b}, data: {a: " + strings.Repeat("a", 1<<20) + "}}", ""},
		"more than 1 MiB":                   {"{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: b}, data: {a: " + strings.Repeat("a", 1<<20) + "}, binaryData: {b: YQ==}}", "data: is larger than 1024 KiB"},
		"a Secret of 1 MiB in base64":       {"{apiVersion: v1, kind: Secret, metadata: {name: a, namespace: b}, data: {a: " + base64.StdEncoding.EncodeToString(make([]byte, 1<<20)) + "}}", ""},
		"a larger one":                      {"{apiVersion: v1, kind: Secret, metadata: {name: a, namespace: b}, data: {a: " + base64.StdEncoding.EncodeToString(make([]byte, 1<<20)) + "}, stringData: {b: c}}", "data: is larger than 1024 KiB"},
		"a label in a selector":             {service("ports: [{port: 80}], selector: {app: web shop}"), `spec.selector.app: "web shop" is not a valid value of a label`},
	} {
		t.Run(name, func(t *testing.T) {
			r := &document.Report{}
			CheckBuiltin(r, nil, parse(t, test.object))
			got := strings.Join(messages(r), "\n")
			if (test.want == "") != (got == "") || !strings.Contains(got, test.want) {
				t.Errorf("got:\n%s\nwant:\n%s", got, test.want)
			}
			if test.want != "" && name != "a misspelt image" && len(r.Problems) > 3 {
				t.Errorf("too many warnings:\n%s", got)
			}
		})
	}
}

// The items of lists of custom resources have the keys that their definition declares.
func TestDeclaredListKeys(t *testing.T) {
	definition := parse(t, `
spec:
  versions:
  - name: v1
    schema:
      openAPIV3Schema:
        type: object
        properties:
          ports:
            type: array
            x-kubernetes-list-type: map
            x-kubernetes-list-map-keys: [port, protocol]
            items: {type: object, properties: {port: {type: integer}, protocol: {type: string, default: TCP}}}
          hosts: {type: array, x-kubernetes-list-type: set, items: {type: string}}
          words: {type: array, items: {type: string}}
`)
	for text, want := range map[string]string{
		"ports: [{port: 1}, {port: 1, protocol: UDP}]": "",
		"ports: [{port: 1}, {port: 1, protocol: TCP}]": "ports[1]: has the same port 1, protocol TCP as item 0",
		"ports: [{protocol: UDP}]":                     "ports[0]: has no port",
		"hosts: [a, b, a]":                             "hosts[2]: is the same as item 0",
		"words: [a, a]":                                "",
	} {
		r := &document.Report{}
		CheckCustom(r, nil, object(parse(t, "{apiVersion: example.com/v1, kind: Widget, "+text+"}")), object(definition), "its definition")
		if got := strings.Join(messages(r), "\n"); (want == "") != (got == "") || !strings.Contains(got, want) {
			t.Errorf("%s: got %q, want %q", text, got, want)
		}
	}
}

func object(content map[string]any) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: content}
}
