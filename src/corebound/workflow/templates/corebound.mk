# Speed, measured by corebound. Written by `corebound init`; `include corebound.mk` in a Makefile.
COREBOUND ?= corebound
SPEED_BASE ?= @BRANCH@

.PHONY: speed speed-compare speed-nightly

speed: ## measure the scenarios, and write the site
	$(COREBOUND) run scenarios
	$(COREBOUND) report

speed-compare: ## say what became slower since SPEED_BASE
	$(COREBOUND) compare-commits $(SPEED_BASE) HEAD scenarios

speed-nightly: ## all that a night does
	$(COREBOUND) nightly scenarios
