"""The Space of this metric: a page to try it on."""

from qabench.hub.space import page

page("fanout_evidence").launch()
