"""What a re-run said of a change, in words."""

from __future__ import annotations

from corebound.model.regression import Answer, Confirmation

_ANSWERS: dict[Answer, str] = {
    "confirmed": "confirmed",
    "refuted": "not confirmed",
    "undecided": "measured again, which does not tell",
    "impossible": "could not be measured again",
}


def answer_words(confirmation: Confirmation) -> str:
    """What it said, when, and how."""
    return f"{_ANSWERS[confirmation.answer]} ({confirmation.at[:10]}): {confirmation.how}"
