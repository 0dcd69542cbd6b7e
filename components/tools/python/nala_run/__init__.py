"""Runs code for whoever may not be trusted, and tells what came of it.

Nothing here keeps the code from anything: it shares the interpreter, and the sandbox is
around both. What is here sees to it that the answer can be understood.
"""
