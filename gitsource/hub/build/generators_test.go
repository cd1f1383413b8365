package build

// generatedCharts has charts that are generators, in a file and in the kustomization itself.
var generatedCharts = with(webChart("charts/web"), webChart("more/web"), sources{
	"kustomization.yaml": `namespace: shop
namePrefix: my-
helmGlobals: {chartHome: none}
generators:
- generators/web.yaml
- |-
  apiVersion: builtin
  kind: HelmChartInflationGenerator
  metadata: {name: other}
  name: web
  releaseName: other
  namespace: other
  chartHome: more
  valuesInline: {replicas: 2}
- |-
  apiVersion: builtin
  kind: ConfigMapGenerator
  metadata: {name: plain}
  literals: [a=b]
`,
	"generators/web.yaml": `apiVersion: builtin
kind: HelmChartInflationGenerator
metadata: {name: a}
name: web
releaseName: a
valuesFile: values.yaml
includeCRDs: true
---
apiVersion: builtin
kind: HelmChartInflationGenerator
metadata: {name: b}
name: web
releaseName: b
namespace: more
`,
	"values.yaml": "replicas: 6\nports: [1]\nimage: {name: web}\nlabels: {}\n",
})
