"""The Space of this metric: a page to try it on."""

from qabench.space.app import page

page("expertqa_faithfulness").launch()
